{%- macro delivered_columns(feed, table) -%}
    {%- set periods = highwater.column_periods(feed, table) -%}
    {%- set columns = periods[-1].columns | list if periods else [] -%}
    {%- for period in periods[:-1] -%}
        {%- for column in period.columns if column not in columns -%}
            {%- do columns.append(column) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{ return(columns) }}
{%- endmacro -%}
