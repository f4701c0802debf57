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
