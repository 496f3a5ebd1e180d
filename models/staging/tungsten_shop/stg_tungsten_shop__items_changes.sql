{{ highwater.tungsten_changes(source('tungsten_shop', 'items'), 'items') }}
