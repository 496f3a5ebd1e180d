{%- macro published_log_batch(publications, entity) -%}
    {%- if not adapter.get_relation(publications.database, publications.schema, publications.identifier) -%}
        {{ return(none) }}
    {%- endif -%}
    {{ return(run_query(
        'select max_by(log_batches, publication)[\'' ~ entity ~ '\'] from ' ~ publications
    ).rows[0][0]) }}
{%- endmacro -%}
