{{ highwater.tungsten_changes(source('tungsten_shop', 'orders'), 'orders') }}
