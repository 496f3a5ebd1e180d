{%- macro falling_positions(arriving, source, says=true) -%}
    {%- set batches = run_query(highwater._falls_of_batches(arriving, source)).rows -%}
    {%- set before = highwater._fallen_before(arriving, source) if batches and arriving.current else {'keys': 0, 'began_at': none} -%}
    {%- set found = {'keys': before['keys'], 'changes': 0, 'began_at': before.began_at} -%}
    {%- for batch in batches if found.fall is not defined -%}
        {%- set first = fromjson(batch.first) -%}
        {%- set other = highwater._other_source(arriving, source, first) -%}
        {%- do found.update({
            'keys': found['keys'] + batch['keys'] | int, 'changes': found.changes + batch.fallen | int, 'first': found.get('first', first),
        }) -%}
        {%- if batch['keys'] | int >= 3 or batch.is_whole_file or other or found['keys'] >= 3 -%}
            {%- do found.update({'fall': batch, 'pair': first, 'other': other}) -%}
        {%- else -%}
            {%- do found.update({'began_at': found.began_at or fromjson(batch.times).began_at}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if found.fall is not defined -%}
        {%- if batches and says -%}
            {%- set doubtful = arriving.entity ~ ' has doubtful positions: ' ~ found.changes ~ (' change' if found.changes == 1 else ' changes') ~ ' of '
                ~ source.feed ~ ', the first in ' ~ highwater._place(found.first.newer) ~ ', lost by position to an older one of the same key, by the '
                ~ 'clock of the source. More of them would wait for an epoch. If the source began anew there: highwater epoch ' ~ source.feed -%}
            {%- do highwater.add_to_answer('doubtful', doubtful) -%}
            {%- do exceptions.warn(doubtful) -%}
        {%- endif -%}
        {{ return(none) }}
    {%- endif -%}
    {%- set rest = batches | selectattr('landed', 'ge', found.fall.landed) | list -%}
    {%- set times = fromjson(found.fall.times) -%}
    {%- set fall = found.pair -%}
    {%- do fall.update({
        'entity': arriving.entity, 'feed': source.feed, 'landing_batch': found.fall.landing_batch | int,
        'landed_at': found.fall.landed | int, 'lost': before['keys'], 'other': found.other,
        'keys': rest | map(attribute='keys') | map('int') | sum, 'changes': rest | map(attribute='fallen') | map('int') | sum,
        'began_at': [found.began_at or times.began_at, times.began_at] | min, 'ended_at': times.ended_at,
    }) -%}
    {%- do fall.update({'when': highwater._when_of_fall(source.feed, fall)}) -%}
    {%- if says -%}
        {%- do highwater._say_what_falls(arriving, source, fall) -%}
    {%- endif -%}
    {{ return(fall) }}
{%- endmacro -%}

{%- macro _falls_of_batches(arriving, source) -%}
    {%- set key = highwater.entity_key(arriving.entity) -%}
    {%- set keys = [] -%}
    {%- for column in key -%}
        {%- do keys.append('`key ' ~ loop.index ~ '`') -%}
    {%- endfor -%}
    {%- set truncates = highwater.entity_setting(arriving.entity, 'truncates', false) -%}
    {%- set facts -%}
            change_sequence_number,
            changed_at,
            source_file,
            source_line,
            landing_batch,
            change_type = 'truncate' as is_truncate,
            {{ highwater.is_timed_change(source.feed) }} as is_timed
    {%- endset -%}
    {%- set arrived = 'landing_batch > ' ~ source.watermark
        ~ (' and landing_batch <= ' ~ source.newest if source.newest is defined else '') ~ ' and rejection_reason is null' -%}
    {%- set lowest = arriving.ends | map(attribute='lowest') | reject('none') | min(case_sensitive=true) -%}
    {%- set position -%}
struct(change_sequence_number, changed_at, is_timed, source_file, source_line, landing_batch)
    {%- endset -%}
    {%- set earlier = 'order by landed, source_file, source_line rows between unbounded preceding and 1 preceding' -%}
    with

    -- what is a key is called by its place: its own name may be one of those below
    arrivals as (

        select
            {%- for column in key %}
            `{{ column }}` as `key {{ loop.index }}`,
            {%- endfor %}
            unix_micros(landed_at) as landed,
            {{ facts }}
        from {{ source.relation }}
        where {{ arrived }}

    ),

    known as (

        select * from arrivals
        {%- for relation in arriving.current %}
        {%- set above = "feed = '" ~ source.feed ~ "' and change_sequence_number >= '" ~ lowest ~ "'"
            ~ (' and ' ~ relation.where if relation.where else '') %}

        union all

        select{{ highwater.broadcast_hint('arrivals', arriving.rows) }}
            {%- for column in key %}
            `{{ column }}`,
            {%- endfor %}
            0L as landed,
            {{ facts }}
        from {{ relation.name }} as held
        left semi join arrivals
            on
                {%- for column in key %}
                {{ 'and ' if not loop.first }}held.`{{ column }}` = arrivals.`key {{ loop.index }}`
                {%- endfor %}
        where {{ above }}
        {%- if truncates %}

        union all

        select
            {%- for column in key %}
            `{{ column }}`,
            {%- endfor %}
            0L as landed,
            {{ facts }}
        from {{ relation.name }}
        where change_type = 'truncate' and {{ above }}
        {%- endif %}

        union all

        -- the highest there is, of whatever key
        select
            {%- for column in highwater.entity_columns(arriving.entity) if column.name in key %}
            cast(null as {{ column.data_type }}),
            {%- endfor %}
            0L as landed,
            highest.change_sequence_number,
            highest.changed_at,
            highest.source_file,
            highest.source_line,
            highest.landing_batch,
            false as is_truncate,
            highest.is_timed
        from (
            select max({{ position }}) as highest
            from (select {{ facts }} from {{ relation.name }} where {{ above }})
        )
        where highest is not null
        {%- endfor %}

    ),

    met as (

        select
            *,
            -- the highest that came before, of the key and of all
            max({{ position }}) over (partition by {{ keys | join(', ') }} {{ earlier }}) as `of key`,
            max({{ position }}) over ({{ earlier }}) as `of all`
            {%- if truncates %},
            max(case when is_truncate then {{ position }} end) over ({{ earlier }}) as `of truncates`
            {%- endif %}
        from known

    ),

    compared as (

        select
            *,
            {{ position }} as own,
            {{ 'if(is_truncate, `of all`, greatest(`of key`, `of truncates`))' if truncates else '`of key`' }} as other
        from met
        where landed > 0 and is_timed

    ),

    fallen as (

        select
            *,
            coalesce(case
                when {{ highwater._is_later_below('own', 'other') }} then struct(own as newer, other as older)
                -- it came late, and takes the place of a newer one
                when other.is_timed and {{ highwater._is_later_below('other', 'own') }} and own.change_sequence_number < `of all`.change_sequence_number
                    then struct(other as newer, own as older)
            end) as fall,
            coalesce({{ highwater._is_later_below('own', '`of all`') }}, false) as is_below
        from compared

    ),

    files as (

        select
            landed,
            landing_batch,
            source_file,
            count(fall) as fallen,
            collect_set(case when fall is not null then struct({{ keys | join(', ') }}) end) as keys,
            count(fall) > 0 and count(*) > 1 and every(is_below) as is_whole_file,
            min_by(fall, struct(landed, source_file, source_line)) filter (where fall is not null) as first,
            min(least(fall.newer.changed_at, case when is_below then changed_at end)) as began_at,
            max(`of all`.changed_at) filter (where fall is not null) as ended_at
        from fallen
        group by landed, landing_batch, source_file

    )

    select
        landed,
        landing_batch,
        sum(fallen) as fallen,
        size(array_distinct(flatten(collect_list(keys)))) as keys,
        bool_or(is_whole_file) as is_whole_file,
        to_json(min_by(first, source_file) filter (where fallen > 0), map('timestampFormat', 'yyyy-MM-dd HH:mm:ss')) as first,
        to_json(struct(
            cast(min(began_at) as string) as began_at,
            cast(max(ended_at) as string) as ended_at
        )) as times
    from files
    group by landed, landing_batch
    having sum(fallen) > 0
    order by landed
{%- endmacro -%}

{%- macro _is_later_below(lower, higher) -%}
    {#- Positions of two epochs are as they are declared, but for those of which nothing is. Clocks count seconds, and differ by one. -#}
{{ lower }}.change_sequence_number < {{ higher }}.change_sequence_number
            and substr({{ lower }}.change_sequence_number, 1, 16) in (substr({{ higher }}.change_sequence_number, 1, 16), {{ highwater.lowest_sequence() }})
            and unix_seconds({{ lower }}.changed_at) - unix_seconds({{ higher }}.changed_at) > 2
{%- endmacro -%}

{%- macro _other_source(arriving, source, fall) -%}
    {#- What the records of both changes say of their source, where it is not the same. -#}
    {%- set names = {'source_identity': 'source', 'gtid_source': 'GTID source', 'log_name': 'name of the log files'} -%}
    {%- set raw = graph.sources.values() | selectattr('source_name', 'eq', source.feed) | map(attribute='relation_name') | first -%}
    {%- set places = [] -%}
    {%- for change in [fall.newer, fall.older] -%}
        {%- do places.append(
            'landing_batch = ' ~ change.landing_batch ~ ' and source_file = ' ~ highwater.sql_text(change.source_file)
            ~ ' and source_line = ' ~ change.source_line
        ) -%}
    {%- endfor -%}
    {%- set told = {} -%}
    {%- set records = "(select * from " ~ raw ~ " where entry = 'record' and (" ~ places | join(' or ') ~ '))' -%}
    {%- for record in run_query(highwater.source_of_records(records, source.feed, source.table, arriving.entity)).rows -%}
        {%- set is_newer = record.source_file == fall.newer.source_file and record.source_line | int == fall.newer.source_line -%}
        {%- do told.update({'newer' if is_newer else 'older': record}) -%}
    {%- endfor -%}
    {%- set other = {} -%}
    {%- for name, words in names.items() if told.newer and told.older -%}
        {%- if told.newer[name] and told.older[name] and told.newer[name] != told.older[name] -%}
            {%- do other.update({name: {'words': words, 'was': told.older[name] | string, 'is': told.newer[name] | string}}) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(other) }}
{%- endmacro -%}

{%- macro _fallen_before(arriving, source) -%}
    {#- Keys whose row is older, by the clock, than a change that has lost to it: too few at a time, or before anybody looked. -#}
    {%- set key = highwater.entity_key(arriving.entity) -%}
    {%- set question -%}
    select to_json(struct(
        count(distinct lost.`{{ key | join('`, lost.`') }}`) as keys,
        cast(min(lost.changed_at) as string) as began_at
    ))
    from {{ this }} as lost
    inner join (
        select
            `{{ key | join('`, `') }}`,
            max(struct(change_sequence_number, changed_at)) as `held change`
        from (
            {%- for relation in arriving.current %}
            {{ 'union all' if not loop.first }}
            select
                `{{ key | join('`, `') }}`,
                change_sequence_number,
                changed_at
            from {{ relation.name }}
            where feed = '{{ source.feed }}'{{ ' and ' ~ relation.where if relation.where else '' }}
            {%- endfor %}
        )
        group by `{{ key | join('`, `') }}`
    ) as current_rows
        on
            {%- for column in key %}
            lost.`{{ column }}` = current_rows.`{{ column }}` and
            {%- endfor %}
            {{ highwater._is_later_below('lost', '`held change`') }}
    where lost.feed = '{{ source.feed }}' and lost.verdict = 'superseded' and {{ highwater.is_timed_change(source.feed, 'lost.') }}
    {%- endset -%}
    {{ return(fromjson(run_query(question).rows[0][0])) }}
{%- endmacro -%}

{%- macro _when_of_fall(feed, fall) -%}
    {%- set clock = highwater.clock_of_record(feed) -%}
    {%- if fall.other.source_identity -%}
        {{ return("source_identity = " ~ highwater.sql_text(fall.other.source_identity['is']) ~ " and " ~ clock ~ " > timestamp '" ~ fall.ended_at ~ "'") }}
    {%- endif -%}
    {{ return(clock ~ " >= timestamp '" ~ fall.began_at ~ "'") }}
{%- endmacro -%}

{%- macro _place(change) -%}
{{ change.source_file }}, line {{ change.source_line }}
{%- endmacro -%}

{%- macro _say_what_falls(arriving, source, fall) -%}
    {%- set records = source.batches | selectattr('landed_at', 'ge', fall.landed_at) | map(attribute='records') | map('int') | sum -%}
    {%- set others = [] -%}
    {%- for fact in fall.other.values() -%}
        {%- do others.append('the ' ~ fact.words ~ ' was ' ~ fact.was ~ ' and is ' ~ fact['is']) -%}
    {%- endfor -%}
    {%- set file = 'models/staging/' ~ source.feed ~ '/_' ~ source.feed ~ '__sources.yml' -%}
    {{ highwater.say_that_it_waits(
        arriving.entity,
        records ~ (' record' if records == 1 else ' records') ~ ' of ' ~ source.feed ~ ', from landing batch ' ~ fall.landing_batch ~ ' on',
        'The clock of the source goes on and its positions fall: ' ~ fall.changes
        ~ (' change' if fall.changes == 1 else ' changes') ~ ' of ' ~ fall['keys'] ~ (' key' if fall['keys'] == 1 else ' keys')
        ~ ', the first of ' ~ fall.newer.changed_at ~ ' in ' ~ highwater._place(fall.newer) ~ ', would lose to an older one, of '
        ~ fall.older.changed_at ~ ' in ' ~ highwater._place(fall.older) ~ (', and ' ~ others | join(', ') if others else '')
        ~ '. A failover, a restored or upgraded database or a log that was reset begins an epoch; declare it by:'
        ~ '\n    highwater epoch ' ~ source.feed
        ~ '\n  or write it, in ' ~ file ~ ' beside `format`, at the end of the list if there is one, and run highwater build:\n    epochs:'
        ~ '\n      - {' ~ ('' if fall.other.source_identity else 'table: ' ~ source.table ~ ', ') ~ 'when: ' ~ tojson(fall.when) ~ '}'
        ~ ('\n  Before, ' ~ fall.lost ~ (' key has' if fall.lost == 1 else ' keys have') ~ ' lost so already; when the epoch is declared, first run: highwater rebuild '
        ~ arriving.entity ~ ' --from raw' if fall.lost else '')
        ~ '\n  If it is no new epoch, the clock of this source does not tell; write `clock: ignore` there.'
    ) }}
{%- endmacro -%}
