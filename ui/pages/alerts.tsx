import { curlCommand } from "../curl.ts"
import { useAsked } from "../data.ts"
import { shownTenant } from "../frame.tsx"
import { Answered, Command } from "../parts.tsx"
import { petrel } from "../session.ts"
import { AlertRows } from "./overview.tsx"
import { Thresholds } from "./thresholds.tsx"

/** The alerts that are raised. */
export const Alerts = () => {
  const tenant = shownTenant()
  const asked = useAsked(
    `alerts ${tenant}`,
    (options) => petrel.deliveries.alerts({ tenant }, options),
    5_000
  )
  return (
    <>
      <h1>Alerts</h1>
      <Answered asked={asked}>{({ alerts }) => <AlertRows alerts={alerts} />}</Answered>
      <Command text="petrel alerts list" request={curlCommand(`/v1/tenants/${tenant}/alerts`)} />
      <Thresholds tenant={tenant} />
    </>
  )
}
