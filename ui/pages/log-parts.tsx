/* What the lists of the log share. */
import { deliveryPage, EndpointLink } from "../parts.tsx"
import { address, query } from "../router.ts"
import { session } from "../session.ts"

const lists = [
  ["deliveries", "Deliveries"],
  ["events", "Events"],
  ["attempts", "Attempts"]
] as const

/** The lists of the log: each has the conditions of the others that it knows, too. */
export const LogTabs = ({ shown }: { readonly shown: (typeof lists)[number][0] }) => {
  const { endpoint, since, tenant, type, until } = query.value
  return (
    <nav class="tabs" aria-label="Lists of the log">
      {lists
        // The events of a portal for one endpoint are those of its deliveries.
        .filter(([name]) => name !== "events" || session.value?.endpoint === undefined)
        .map(([name, title]) => (
          <a
            key={name}
            href={address([name], {
              ...{ tenant, type, since, until },
              ...(name === "events" ? {} : { endpoint })
            })}
            aria-current={name === shown ? "page" : undefined}
          >
            {title}
          </a>
        ))}
    </nav>
  )
}

/** The heads of the columns that say which delivery it is. */
export const DeliveryHeads = () => (
  <>
    <th>Event</th>
    <th class="hide-s">Type</th>
    <th class="below-s">Endpoint</th>
  </>
)

/** The columns that say which delivery it is. */
export const DeliveryCells = ({
  of: { delivery, endpoint, event, tenant, type }
}: {
  readonly of: {
    readonly delivery: string
    readonly endpoint: string
    readonly event: string
    readonly tenant: string
    readonly type: string | null
  }
}) => (
  <>
    <td class="mono">
      <a href={deliveryPage(tenant, delivery)}>{event}</a>
    </td>
    <td class="hide-s">{type ?? "–"}</td>
    <td class="below-s">
      <EndpointLink tenant={tenant} id={endpoint} />
    </td>
  </>
)
