{%- macro publication(group, logs) -%}
    {%- set state = highwater._state_of_logs(group, logs) if execute else {'log_batches': {}, 'feeds': {}} -%}
    {%- if not state.log_batches -%}
    -- nothing to publish
    select
        cast(null as bigint) as publication,
        cast(null as map<string, bigint>) as log_batches,
        cast(null as map<string, bigint>) as landing_batches,
        cast(null as timestamp) as landed_at
    where false
    {%- else -%}
    {%- do highwater.handed_on().update({'numbered': {'column': 'publication', 'number': state.publication}}) -%}
    select
        {{ state.publication }}L as publication,
        map(
            {%- for entity, log_batch in state.log_batches.items() %}
            '{{ entity }}', {{ log_batch }}L{{ ',' if not loop.last }}
            {%- endfor %}
        ) as log_batches,
        map(
            {%- for feed, landed in state.feeds.items() %}
            '{{ feed }}', {{ (landed[0] ~ 'L') if landed[0] else 'cast(null as bigint)' }}{{ ',' if not loop.last }}
            {%- endfor %}
        ) as landing_batches,
        timestamp_micros({{ state.feeds.values() | map(attribute=1) | select | map('int') | max }}) as landed_at
    {%- endif %}
{%- endmacro -%}

{%- macro _state_of_logs(group, logs) -%}
    {#- What every log of the group has; no log batches when there is nothing new, or when one log lacks records. -#}
    {%- set nothing = {'log_batches': {}, 'feeds': {}} -%}
    {%- set last = [0, none] -%}
    {%- if is_incremental() -%}
        {%- set last = run_query('select max(publication), max_by(to_json(log_batches), publication) from ' ~ this).rows[0] -%}
    {%- endif -%}
    {%- set state = {'publication': (last[0] or 0) | int + 1, 'log_batches': {}, 'feeds': {}} -%}
    {%- set questions = [] -%}
    {%- for log in logs -%}
        {%- set entity = log.identifier.removesuffix('_changes') -%}
        {%- set watermarks = {} -%}
        {%- set newest = [0] -%}
        {%- for row in run_query('select feed, max(landing_batch), max(log_batch) from ' ~ log ~ ' group by feed').rows -%}
            {%- do watermarks.update({row[0]: row[1] | int}) -%}
            {%- do newest.append(row[2] | int) -%}
        {%- endfor -%}
        {%- do state.log_batches.update({entity: newest | max}) -%}
        {%- for table in highwater.tables_of_project() if table.entity == entity -%}
            {%- for source in table.sources -%}
                {%- if source.feed not in state.feeds -%}
                    {%- do state.feeds.update({source.feed: run_query(
                        'select max(landing_batch), unix_micros(max(landed_at)) from raw.' ~ source.feed
                    ).rows[0]}) -%}
                {%- endif -%}
                {%- do questions.append(
                    "select '" ~ entity ~ "', count(*), min(landing_batch) from raw." ~ source.feed
                    ~ " where entry = 'record' and source_table = " ~ highwater.sql_text(source.source_table)
                    ~ " and landing_batch > " ~ watermarks.get(source.feed, 0)
                ) -%}
            {%- endfor -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- for question in questions -%}
        {%- set waiting = run_query(question).rows[0] -%}
        {%- if waiting[1] -%}
            {%- do log(
                group ~ ": nothing is published. " ~ waiting[0] ~ "_changes has not applied " ~ waiting[1]
                ~ (" record" if waiting[1] == 1 else " records") ~ ", from landing batch " ~ waiting[2]
                ~ " on; readers see what was published before.", info=true
            ) -%}
            {{ return(nothing) }}
        {%- endif -%}
    {%- endfor -%}
    {%- if last[1] and fromjson(last[1]) == state.log_batches -%}
        {{ return(nothing) }}
    {%- endif -%}
    {{ return(state) }}
{%- endmacro -%}
