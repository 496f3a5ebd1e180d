{%- macro json_text(text) -%}
case
    when is_valid_utf8({{ text }})
        -- half of a surrogate pair is no character; it would become a question mark
        and not (
            contains({{ text }}, '\\u')
            and {{ text }} rlike '\\\\u[dD][89a-fA-F]'
            and replace({{ text }}, '\\\\', ' ') rlike
            '\\\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\\\u[dD][c-fC-F])|(?<!\\\\u[dD][89abAB][0-9a-fA-F]{2})\\\\u[dD][c-fC-F]'
        )
        then {{ text }}
end
{%- endmacro -%}
