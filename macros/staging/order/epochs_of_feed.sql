{%- macro epochs_of_feed(feed) -%}
    {%- set epochs = [] -%}
    {%- for entry in highwater.feed_setting(feed, 'epochs', []) -%}
        {%- set before = epochs[-1].number if epochs else 0 -%}
        {%- set number = entry.get('number', before + 1) if entry is mapping else before + 1 -%}
        {%- if number is not integer or number <= before or number is sameas true -%}
            {{ exceptions.raise_compiler_error(
                "an epoch of the feed " ~ feed ~ " has the number " ~ number ~ "; it must be a whole number above " ~ before
                ~ ", which the entry before it has, because a later entry beats the earlier ones."
            ) }}
        {%- endif -%}
        {%- do epochs.append({'number': number, 'entry': entry}) -%}
    {%- endfor -%}
    {{ return(epochs) }}
{%- endmacro -%}
