{% test has_agreeing_layers(model, key) %}

with

layers as (

    select
        struct(`{{ key | join('`, `') }}`) as key,
        count_if(not is_pending) as base_rows,
        count_if(is_pending) as pending_rows,
        bool_or(is_new) as is_new,
        max(case when not is_pending then change_sequence_number end) as base_sequence,
        max(case when is_pending then change_sequence_number end) as pending_sequence
    from {{ model }}
    -- truncates are no rows of a key
    where change_type <> 'truncate'
    group by `{{ key | join('`, `') }}`

)

select
    *,
    case
        when base_rows > 1 then 'more than one base row'
        when pending_rows > 1 then 'more than one pending row'
        when is_new and base_rows = 1 then 'is new, but has a base row'
        when pending_sequence < base_sequence then 'pending row is older than the base row'
    end as problem
from layers
where
    base_rows > 1
    or pending_rows > 1
    -- a pending row may be without a base row and not new: a compaction that was killed leaves such
    or (is_new and base_rows = 1)
    or pending_sequence < base_sequence

{% endtest %}
