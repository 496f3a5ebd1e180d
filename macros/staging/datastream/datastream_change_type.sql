{%- macro datastream_change_type() -%}
case
    when is_baseline then 'insert'
    when upper(metadata.change_type) = 'INSERT' then 'insert'
    when upper(metadata.change_type) in ('UPDATE-INSERT', 'UPDATE') then 'update'
    when upper(metadata.change_type) in ('UPDATE-DELETE', 'DELETE') then 'delete'
end
{%- endmacro -%}
