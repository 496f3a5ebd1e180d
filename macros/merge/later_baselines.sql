{%- macro later_baselines(arriving, source) -%}
    {%- set later = [] -%}
    {%- if not (source.may_hold_baseline and highwater.entity_key(arriving.entity)) -%}
        {{ return(later) }}
    {%- elif not source.batches | map(attribute='baseline_rows') | map('int') | sum -%}
        {{ return(later) }}
    {%- endif -%}
    {%- set log = this if is_incremental() else none -%}
    {%- set found = run_query(highwater._readings_of_baselines(arriving.entity, source, log)).rows -%}
    {%- set changed = highwater._epochs_with_changes(log, source) if log and highwater._has_baseline_first(source.feed) else [] -%}
    {%- set folders = highwater._first_folders(found) if highwater.feed_setting(source.feed, 'format') in ('dms-csv', 'dms-parquet') else {} -%}
    {%- for file in found if file.landing_batch | int > 0 -%}
        {%- set is_elsewhere = folders and file.source_file.rpartition('/')[0] not in folders[file.epoch] -%}
        {%- if file.differing | int or (file.news | int and (file.epoch in changed or is_elsewhere)) -%}
            {%- do later.append(file) -%}
        {%- endif -%}
    {%- endfor -%}
    {#- a file lands once under its name: what comes of it again is replayed -#}
    {%- set waiting = later | rejectattr('source_file', 'in', highwater._files_in_log(log, source.feed, later)) | list -%}
    {%- if waiting -%}
        {%- do highwater._say_what_waits(arriving, source, waiting) -%}
    {%- endif -%}
    {{ return(waiting) }}
{%- endmacro -%}

{%- macro _readings_of_baselines(entity, source, log) -%}
    {%- set key = highwater.entity_key(entity) -%}
    with

    baselines as (

        select
            {%- for column in key %}
            `{{ column }}`,
            {%- endfor %}
            {{ highwater._epoch_of_load(source) }} as `its epoch`,
            change_hash,
            changed_at,
            source_file,
            landing_batch,
            unix_micros(landed_at) as `landed micros`
        from {{ source.relation }}
        where landing_batch > {{ source.watermark }} and {{ highwater.is_undeclared_baseline() }}
        {%- if log %}

        union all

        -- what the log has comes before everything that arrives
        select
            {%- for column in key %}
            `{{ column }}`,
            {%- endfor %}
            {{ highwater._epoch_of_load(source) }} as `its epoch`,
            change_hash,
            changed_at,
            source_file,
            0L as landing_batch,
            0L as `landed micros`
        from {{ log }}
        where feed = '{{ source.feed }}' and rejection_reason is null and {{ highwater.is_baseline_sequence('change_sequence_number') }}
        {%- endif %}

    ),

    readings as (

        select
            *,
            min(struct(landing_batch, changed_at, source_file, change_hash)) over (
                partition by `its epoch`{% for column in key %}, `{{ column }}`{% endfor %}
            ) as `first reading`,
            min(struct(landing_batch, source_file)) over (
                partition by `its epoch`{% for column in key %}, `{{ column }}`{% endfor %}, change_hash, changed_at
            ) as `first copy`
        from baselines

    )

    select
        `its epoch` as epoch,
        landing_batch,
        `landed micros` as landed_at,
        source_file,
        count(*) as records,
        -- the key was read before, in another file, with another content or at another time
        count_if(
            `first copy`.landing_batch > 0
            and source_file <> `first reading`.source_file
            and not (
                change_hash <=> `first reading`.change_hash and changed_at <=> `first reading`.changed_at
            )
        ) as differing,
        -- no copy of what came before
        count_if(`first copy` = struct(landing_batch, source_file)) as news,
        cast(min(changed_at) as string) as read_from
    from readings
    group by `its epoch`, landing_batch, `landed micros`, source_file
    order by landing_batch, source_file
{%- endmacro -%}

{%- macro _has_baseline_first(feed) -%}
    {#- DMS writes a full load before the first change. Others read it beside the stream, and a declared baseline may come at any time. -#}
    {{ return(highwater.baseline_condition(feed) is none and highwater.feed_setting(feed, 'format') in ('dms-csv', 'dms-parquet')) }}
{%- endmacro -%}

{%- macro _epoch_of_load(source) -%}
    {#- Each shard has a first full load of its own. -#}
    {%- set epoch = 'substr(change_sequence_number, 1, 16)' -%}
    {{ return("concat(" ~ epoch ~ ", ' ', `" ~ source.shard.name ~ "`)" if source.shard else epoch) }}
{%- endmacro -%}

{%- macro _epochs_with_changes(log, source) -%}
    {{ return(run_query(
        'select distinct ' ~ highwater._epoch_of_load(source) ~ ' from ' ~ log ~ " where feed = '" ~ source.feed
        ~ "' and rejection_reason is null and source_line > 0 and not " ~ highwater.is_baseline_sequence('change_sequence_number')
    ).columns[0].values() | list) }}
{%- endmacro -%}

{%- macro _files_in_log(log, feed, files) -%}
    {%- if not log or not files -%}
        {{ return([]) }}
    {%- endif -%}
    {%- set names = [] -%}
    {%- for name in files | map(attribute='source_file') | unique -%}
        {%- do names.append(highwater.sql_text(name)) -%}
    {%- endfor -%}
    {{ return(run_query(
        'select distinct source_file from ' ~ log ~ ' where feed = ' ~ highwater.sql_text(feed) ~ ' and source_file in (' ~ names | join(', ') ~ ')'
    ).columns[0].values() | list) }}
{%- endmacro -%}

{%- macro _first_folders(found) -%}
    {#- By epoch: the folders that the log knows, or else the first one that arrives. -#}
    {%- set folders = {} -%}
    {%- for file in found if file.landing_batch | int == 0 or file.epoch not in folders -%}
        {%- do folders.setdefault(file.epoch, []).append(file.source_file.rpartition('/')[0]) -%}
    {%- endfor -%}
    {{ return(folders) }}
{%- endmacro -%}

{%- macro _say_what_waits(arriving, source, later) -%}
    {%- set first = later[0].landing_batch | int -%}
    {%- set records = source.batches | selectattr('landing_batch', 'ge', first) | map(attribute='records') | map('int') | sum -%}
    {%- set files = later | map(attribute='source_file') | unique | list -%}
    {%- set when = "source_file in ('" ~ files | map('replace', "'", "\\\\'") | join("', '") ~ "')" -%}
    {%- set entry = '\n      - {table: ' ~ source.table ~ ', when: "' ~ when ~ '", ' -%}
    {{ highwater.say_that_it_waits(
        arriving.entity,
        records ~ (' record' if records == 1 else ' records') ~ ' of ' ~ source.feed ~ ', from landing batch ' ~ first ~ ' on',
        'Rows of a further full load came, and nothing tells which changes are newer: '
        ~ files[:3] | join(', ') ~ (' and ' ~ (files | length - 3) ~ ' more' if files | length > 3 else '')
        ~ '. They are applied when it is said what they are.'
        ~ '\n  The truth from then on, and keys that they lack ' ~ ('stay' if source.shard else 'are gone') ~ ':\n    highwater resync ' ~ arriving.entity
        ~ " --from '" ~ files | join("' --from '") ~ "'"
        ~ '\n  Otherwise one of these, in models/staging/' ~ source.feed ~ '/_' ~ source.feed ~ '__sources.yml beside `format`, '
        ~ 'at the end of the list if there is one:\n    epochs:'
        ~ entry ~ 'ignore: true}    # left out, on record'
        ~ entry ~ 'baseline: true}    # the first full load, only late: every change beats them'
    ) }}
{%- endmacro -%}
