with

ties as (

    {%- for table in logged_tables() %}
    {%- if not loop.first %}

    union all
    {%- endif %}

    select
        '{{ table.entity }}' as table_name,
        to_json(struct({{ entity_key(table.entity) | join(', ') or 'feed' }})) as key_values,
        change_sequence_number,
        change_type,
        verdict,
        source_file,
        source_line,
        feed,
        landing_batch,
        landed_at
    from {{ ref(table.entity ~ '_changes') }}
    where is_tied
    {%- endfor %}

)

select * from ties
