{%- macro changes_of_touched_keys(log, entity) -%}
    {{ highwater.changes_with_images(log, entity, highwater._new_to_history(log, entity)) }}
{%- endmacro -%}

{%- macro _new_to_history(log, entity) -%}
    {#- watermark: the last batch that the history has applied; none: it is made from the whole log. last: the last batch that readers may see -#}
    {%- set arriving = {'watermark': none, 'rows': 0, 'truncated': false, 'last': highwater.last_log_batch_shown(entity)} -%}
    {%- if not execute or not is_incremental() -%}
        {{ return(arriving) }}
    {%- endif -%}
    {%- set there = {} -%}
    {%- for column in adapter.get_columns_in_relation(this) -%}
        {%- do there.update({column.name: column.dtype | lower | replace(' ', '')}) -%}
    {%- endfor -%}
    {%- set lacks = [] -%}
    {%- for column in highwater.columns_in_history(entity) -%}
        {%- set name = column.version_name -%}
        {%- if name not in there -%}
            {%- do lacks.append(name) -%}
        {%- elif there[name] != column.data_type | replace(' ', '') -%}
            {{ exceptions.raise_compiler_error(
                this ~ " has " ~ name ~ " as " ~ there[name] ~ ", and it is declared as " ~ column.data_type
                ~ ". Make the history anew from the log: highwater dbt run --full-refresh --select " ~ this.identifier
            ) }}
        {%- endif -%}
    {%- endfor -%}
    {%- if there and lacks -%}
        {#- a new column of the entity: every version is looked at again -#}
        {{ return(arriving) }}
    {%- endif -%}
    {%- do arriving.update({'watermark': highwater.newest_log_batch(this)}) -%}
    {%- set found = run_query(
        "select count(*), count_if(change_type = 'truncate') from " ~ log ~ " where log_batch > " ~ arriving.watermark
        ~ highwater.up_to_log_batch(arriving.last) ~ " and verdict in ('applied', 'superseded')"
    ).rows[0] -%}
    {%- do arriving.update({'rows': found[0] | int, 'truncated': (found[1] | int) > 0}) -%}
    {{ return(arriving) }}
{%- endmacro -%}
