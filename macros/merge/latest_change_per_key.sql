{%- macro latest_change_per_key(changes, key) -%}
    select latest.*
    from (
        select max_by(struct({{ changes }}.*), {{ total_order(changes) }}) as latest
        from {{ changes }}
        group by {{ key | join(', ') }}
    )
{%- endmacro -%}
