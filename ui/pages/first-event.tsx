import { curlCommand } from "../curl.ts"
import { shownTenant } from "../frame.tsx"
import { Command } from "../parts.tsx"
import { may } from "../session.ts"

/** How an event is published, where nothing has gone out yet. */
export const FirstEvent = () => {
  const tenant = shownTenant()
  const whose = tenant === "*" ? "acme" : tenant
  const event = { type: "invoice.paid", data: { invoice: 43 } }
  return may("events:publish") ? (
    <Command
      text={`petrel publish ${whose} ${event.type} '${JSON.stringify(event.data)}'`}
      request={curlCommand(`/v1/tenants/${whose}/events`, "POST", event)}
    />
  ) : null
}
