{%- macro changes_of_touched_keys(log, entity) -%}
    {{ highwater._changes_with_images(log, entity, highwater._new_to_history(log, entity)) }}
{%- endmacro -%}

{%- macro _changes_with_images(log, entity, arriving) -%}
    {%- set key = highwater.entity_key(entity) -%}
    {%- set columns = highwater._columns_of_versions(entity) -%}
    select{{ highwater.broadcast_hint('touched', arriving.rows) if arriving.rows }}
        struct({% for column in key %}log.`{{ column }}`{{ ', ' if not loop.last }}{% endfor %}) as key,
        struct(
            {%- for column in columns %}
            log.`{{ column.name }}`{{ ',' if not loop.last }}
            {%- endfor %}
        ) as image,
        {%- if highwater.entity_setting(entity, 'partial_images', false) %}
        log.present_columns,
        {%- endif %}
        log.change_sequence_number,
        log.is_deleted,
        log.change_hash,
        {{ highwater.effective_at(log, entity) | indent(8) }} as effective_at,
        log.log_batch
    from {{ log }} as log
    {%- if arriving.rows %}
    left semi join (
        select `{{ key | join('`, `') }}`
        from {{ log }}
        where log_batch > {{ arriving.mark }}{{ highwater._upto(arriving.last) }} and verdict in ('applied', 'superseded')
        {%- if arriving.truncated %}
        union all
        -- what stood when the table was emptied
        select
            {%- for column in columns if column.name in key %}
            history.`{{ column.version_name }}`{{ ',' if not loop.last }}
            {%- endfor %}
        from {{ this }} as history
        left semi join (
            select
                change_sequence_number,
                {{ highwater.effective_at(log, entity) | indent(16) }} as effective_at
            from {{ log }}
            where
                log_batch > {{ arriving.mark }}{{ highwater._upto(arriving.last) }}
                and verdict in ('applied', 'superseded')
                and change_type = 'truncate'
        ) as truncates
            on
                history.valid_from_sequence < truncates.change_sequence_number
                and (
                    history.valid_to_sequence is null
                    or history.valid_to_sequence > truncates.change_sequence_number
                    or history.valid_to > truncates.effective_at
                )
        {%- endif %}
    ) as touched
        on
            {%- for column in key %}
            {{ 'and ' if not loop.first }}log.`{{ column }}` = touched.`{{ column }}`
            {%- endfor %}
    {%- endif %}
    where
        -- a copy says nothing new
        log.verdict in ('applied', 'superseded'){{ highwater._upto(arriving.last, 'log.') }}
        {%- if highwater.entity_setting(entity, 'truncates', false) %}
        and log.change_type <> 'truncate'
        {%- endif %}
        {%- if arriving.mark is not none and not arriving.rows %}
        and false
        {{ highwater._all_taken_in() }}
        {%- endif %}
{%- endmacro -%}

{%- macro _new_to_history(log, entity) -%}
    {#- mark: what the history has taken in; none: it is made from the whole log. last: the last batch that readers may see -#}
    {%- set arriving = {'mark': none, 'rows': 0, 'truncated': false, 'last': highwater._last_log_batch_shown(entity)} -%}
    {%- if not execute or not is_incremental() -%}
        {{ return(arriving) }}
    {%- endif -%}
    {%- set there = {} -%}
    {%- for column in adapter.get_columns_in_relation(this) -%}
        {%- do there.update({column.name: column.dtype | lower | replace(' ', '')}) -%}
    {%- endfor -%}
    {%- set lacks = [] -%}
    {%- for column in highwater._columns_of_versions(entity) -%}
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
    {%- do arriving.update({'mark': highwater.newest_log_batch(this)}) -%}
    {%- set found = run_query(
        "select count(*), count_if(change_type = 'truncate') from " ~ log ~ " where log_batch > " ~ arriving.mark
        ~ highwater._upto(arriving.last) ~ " and verdict in ('applied', 'superseded')"
    ).rows[0] -%}
    {%- do arriving.update({'rows': found[0] | int, 'truncated': (found[1] | int) > 0}) -%}
    {{ return(arriving) }}
{%- endmacro -%}

{%- macro _upto(last, prefix='') -%}
    {{ return(' and ' ~ prefix ~ 'log_batch <= ' ~ last if last is not none else '') }}
{%- endmacro -%}
