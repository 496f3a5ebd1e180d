with

rejected as (

    {%- for table in logged_tables() %}
    {%- if not loop.first %}

    union all
    {%- endif %}

    select
        '{{ table.entity }}' as table_name,
        feed,
        landing_batch,
        landed_at,
        rejection_reason,
        rejection_detail,
        source_file,
        source_line,
        record
    from {{ ref(table.entity ~ '_changes') }}
    where rejection_reason is not null and not is_derived
    {%- endfor %}

),

-- accepted when it was replayed
mended as (

    {%- for table in logged_tables() %}
    {%- if not loop.first %}

    union all
    {%- endif %}

    {{ accepted_by_replay(table) }}
    {%- endfor %}

)

select
    rejected.table_name,
    rejected.rejection_reason,
    rejected.rejection_detail,
    rejection_reasons.what_to_do,
    rejected.source_file,
    rejected.source_line,
    rejected.feed,
    rejected.landing_batch,
    rejected.landed_at,
    case
        when is_valid_utf8(cast(rejected.record as string)) then cast(rejected.record as string)
        else concat('bytes in hex: ', hex(rejected.record))
    end as text
from rejected
left join {{ ref('rejection_reasons') }} as rejection_reasons
    on rejected.rejection_reason = rejection_reasons.rejection_reason
left anti join mended
    on
        rejected.table_name = mended.table_name
        and rejected.source_file = mended.source_file
        and rejected.source_line = mended.source_line
