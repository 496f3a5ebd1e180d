{%- macro datastream_records(records, feed, entity) -%}
    {%- set columns = entity_columns(entity) -%}
    {%- set order = feed_setting(feed, 'order', 'change_sequence_number') -%}
    {%- set is_baseline_feed = feed_setting(feed, 'role') == 'baseline' -%}
    {%- set baseline = 'true' if is_baseline_feed else feed_setting(feed, 'baseline') -%}
    {%- set schema -%}
        array<struct<
                        {%- for column in columns %}
                        `{{ column.field }}`: string,
                        {%- endfor %}
                        datastream_metadata: struct<
                            source_timestamp: string,
                            change_sequence_number: string,
                            change_type: string,
                            sort_keys: array<string>
                        >
                    >>
    {%- endset -%}
    select
        source_file,
        source_line,
        landing_batch,
        landed_at,
        record,
        case
            when problem is not null then problem
            when text is null then 'not_utf8'
            when fields is null then 'malformed_record'
        end as problem,
        {%- set exact = columns | selectattr('data_type', 'in', _wide_decimals(columns)) | list %}
        {%- if exact %}
        -- from_json passes JSON numbers through a double: long ones are taken from the text itself
        struct(
            {%- for column in columns %}
            {%- if column in exact %}
            case
                when text rlike '[0-9.]{17}'
                    then try_variant_get(try_parse_json(text), '$["{{ column.field }}"]', 'string')
                else fields.`{{ column.field }}`
            end as `{{ column.field }}`
            {%- else %}
            fields.`{{ column.field }}`
            {%- endif %}
            {{- ',' if not loop.last }}
            {%- endfor %}
        ) as fields,
        {%- else %}
        fields,
        {%- endif %}
        metadata.change_type as operation,
        {%- if baseline %}
        case
            when is_baseline then 'insert'
        {%- else %}
        case
        {%- endif %}
            when upper(metadata.change_type) = 'INSERT' then 'insert'
            when upper(metadata.change_type) in ('UPDATE-INSERT', 'UPDATE') then 'update'
            when upper(metadata.change_type) in ('UPDATE-DELETE', 'DELETE') then 'delete'
        end as change_type,
        {%- if order == 'change_sequence_number' %}
        metadata.change_sequence_number as sequence,
        {%- else %}
        to_json(metadata.sort_keys) as sequence,
        {%- endif %}
        {%- if baseline %}
        case
            when is_baseline then {{ lowest_sequence() }}
            else
                {{ datastream_sequence('metadata', order) | indent(16) }}
        end as change_sequence_number,
        {%- else %}
        {{ datastream_sequence('metadata', order) | indent(8) }} as change_sequence_number,
        {%- endif %}
        metadata.source_timestamp as commit_time,
        case
            when abs(try_cast(metadata.source_timestamp as bigint)) < 100000000000000
                then timestamp_millis(try_cast(metadata.source_timestamp as bigint))
        end as changed_at
    from (
        select
            source_file,
            source_line,
            landing_batch,
            landed_at,
            record,
            problem,
            text,
            document as fields,
            document.datastream_metadata as metadata
            {%- if baseline %},
            coalesce({{ baseline }}, false) as is_baseline
            {%- endif %}
        from (
            select
                *,
                case when is_valid_utf8(cast(record as string)) then cast(record as string) end as text,
                -- wrapped in an array, so that anything behind the document makes it unreadable
                from_json(
                    concat('[', text, ']'),
                    '{{ schema }}',
                    map('allowSingleQuotes', 'false', 'allowNonNumericNumbers', 'false')
                ) as documents,
                case when size(documents) = 1 then documents[0] end as document
            from {{ records }}
        )
    )
{%- endmacro -%}

{%- macro _wide_decimals(columns) -%}
    {%- set types = [] -%}
    {%- for column in columns if column.data_type.startswith('decimal') -%}
        {%- if _decimal_digits(column.data_type)[0] > 15 -%}
            {%- do types.append(column.data_type) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(types) }}
{%- endmacro -%}
