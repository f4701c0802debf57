import { curlCommand } from "../curl.ts"
import { shownTenant } from "../frame.tsx"
import { List, usePage } from "../list.tsx"
import { Command, count } from "../parts.tsx"
import { petrel } from "../session.ts"
import { alertRows } from "./overview.tsx"
import { Thresholds } from "./thresholds.tsx"

/** The alerts that are raised. */
export const Alerts = () => {
  const tenant = shownTenant()
  const asked = usePage(
    "alerts",
    [],
    (given, options) => petrel.deliveries.alerts({ ...given, limit: 50 }, options),
    5_000
  )
  return (
    <>
      <h1>Alerts</h1>
      <List
        {...alertRows}
        asked={asked}
        items={({ alerts }) => alerts}
        below={({ total }) => total > 0 && <small>{count(total)} raised</small>}
      />
      <Command
        text={`petrel alerts list${tenant === "*" ? "" : ` --tenant ${tenant}`}`}
        request={curlCommand(`/v1/tenants/${tenant}/alerts`)}
      />
      <Thresholds tenant={tenant} />
    </>
  )
}
