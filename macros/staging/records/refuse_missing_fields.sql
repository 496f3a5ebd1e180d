{%- macro refuse_missing_fields(wanted, feed, table, beside=[]) -%}
    {%- set periods = highwater.column_periods(feed, table) -%}
    {%- set delivered = beside + highwater.delivered_columns(feed, table) -%}
    {%- set missing = wanted | reject('in', delivered) | list -%}
    {%- for setting in ['timestamp_column', 'sequence_column'] if periods and highwater.feed_setting(feed, setting) in missing -%}
        {{ exceptions.raise_compiler_error(
            "the files of " ~ feed ~ "." ~ table ~ " hold no column " ~ highwater.feed_setting(feed, setting) ~ "; declared are: "
            ~ delivered | join(', ') ~ ". It is the " ~ setting ~ " of the feed: write it into `columns` of the source table where it "
            ~ "stands in the files" ~ (' (DMS writes it behind the operation, before the columns of the row)' if setting == 'timestamp_column' else '')
            ~ ", then: highwater build"
        ) }}
    {%- endfor -%}
    {%- if periods and missing -%}
        {%- set last = periods[-1].columns -%}
        {{ exceptions.raise_compiler_error(
            "the files of " ~ feed ~ "." ~ table ~ " hold no column " ~ missing | join(', ') ~ "; declared are: "
            ~ delivered | join(', ') ~ ". Where lines have it from some time on, declare both periods of the columns in the source "
            ~ "table's `config.meta`, as they stand in the files:\n"
            ~ highwater.periods_in_yaml(periods + [{'columns': last + missing}])
            ~ "\nThen: highwater rebuild TABLE --from raw"
        ) }}
    {%- endif -%}
    {%- for period in periods -%}
        {%- for field in period.columns if (beside + period.columns).count(field) > 1 -%}
            {{ exceptions.raise_compiler_error("the files of " ~ feed ~ "." ~ table ~ " are declared with two columns '" ~ field ~ "'.") }}
        {%- endfor -%}
    {%- endfor -%}
{%- endmacro -%}
