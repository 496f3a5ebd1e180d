select
    shipments.shipment_id,
    shipments.carrier,
    carriers.country,
    shipments.shipped_at,
    date_add(shipments.shipped_at, carriers.days_to_deliver) as due_on
from {{ ref('shipments') }} as shipments
left join {{ ref('carriers') }} as carriers
    on shipments.carrier = carriers.carrier
