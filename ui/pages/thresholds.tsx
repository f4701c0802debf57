import type { CallOptions } from "../../src/client/client.ts"
import { quoted } from "../command-line.ts"
import { curlCommand } from "../curl.ts"
import { type Asked, useAsked } from "../data.ts"
import { formOf, valuesOf } from "../fields.ts"
import { conflictsIn, Lines, Problems, useDraft, useForm, type Wrong, wrongIn } from "../form.tsx"
import { systemThresholdFields, tenantThresholdFields } from "../generated/forms.ts"
import { Action, Answered, Command } from "../parts.tsx"
import { may, petrel } from "../session.ts"

/** Thresholds as they hold, and which of them were set here. */
type Held = Awaited<ReturnType<typeof petrel.settings.thresholds>>

/** Both requests have one field, whose parts the page shows as its own. */
const partsOf = (tenant: string) => {
  const [first] = tenant === "*" ? systemThresholdFields : tenantThresholdFields
  return first?.kind.is === "parts" ? first.kind.parts : []
}

/** Problems name what is wrong behind the one field. */
const ofParts = ({ other, placed }: Wrong): Wrong => ({
  other,
  placed: Object.fromEntries(
    Object.entries(placed).map(([path, text]) => [path.replace(/^alerts\./, ""), text])
  )
})

const read = (tenant: string, options: CallOptions = {}): Promise<Held> =>
  tenant === "*"
    ? petrel.settings.systemThresholds({}, options)
    : petrel.settings.thresholds({ tenant }, options)

/** What was set here itself. */
const setIn = (held: Held): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    held.set.map((name) => [
      name,
      name === "contact"
        ? held.contact
        : name === "systemAlertsTo"
          ? held.systemAlertsTo
          : held.thresholds[name]
    ])
  )

const Changed = ({
  asked,
  held,
  tenant
}: {
  readonly asked: Asked<Held>
  readonly held: Held
  readonly tenant: string
}) => {
  const parts = partsOf(tenant)
  const before = formOf(parts, setIn(held))
  const { clear, isBusy, lines, own, says, submit, typed, wrong } = useForm(parts, before)
  const alerts = valuesOf(parts, typed)
  const typedHere = Object.entries(own).filter(([path, text]) => text !== before[path])
  useDraft(typedHere.length > 0)
  const path = tenant === "*" ? "/v1/alert-thresholds" : `/v1/tenants/${tenant}/alert-thresholds`
  const put = async (to: object | "off" | null, options = {}) => {
    const body = { alerts: to } as Parameters<typeof petrel.settings.setThresholds>[0]
    await (tenant === "*"
      ? petrel.settings.setSystemThresholds(
          body as Parameters<typeof petrel.settings.setSystemThresholds>[0],
          options
        )
      : petrel.settings.setThresholds({ ...body, tenant }, options))
    asked.again()
  }
  // All are put at once: those that others have set since the page was opened are put as they are now.
  const save = async () => {
    const now = await read(tenant)
    const newest = formOf(parts, setIn(now))
    const conflicts =
      now.off === true && held.off !== true
        ? { placed: {}, other: ["Not saved: all alerts were turned off since you opened it."] }
        : conflictsIn(own, before, newest)
    if (conflicts !== undefined) {
      asked.again()
      return conflicts
    }
    try {
      await put(valuesOf(parts, { ...newest, ...Object.fromEntries(typedHere) }), {
        ifMatch: now.revision
      })
    } catch (error) {
      return ofParts(wrongIn(tenant === "*" ? systemThresholdFields : tenantThresholdFields, error))
    }
    clear()
    return "They are set."
  }
  // What holds without a threshold of its own stands where one would be typed.
  const fields = parts.map((part) => {
    const value = held.thresholds[part.name]
    return held.set.includes(part.name) || value === undefined
      ? part
      : { ...part, usual: String(value) }
  })
  const command = `petrel alerts thresholds${tenant === "*" ? "" : ` ${tenant}`}`
  return (
    <form class="card page" onSubmit={submit(save)}>
      <p class="small">
        {held.off === true
          ? "All alerts about this tenant and its endpoints are turned off."
          : `An empty field means the ${tenant === "*" ? "default" : "value for all tenants"}; off turns the alert off.`}
      </p>
      <Problems texts={wrong.other} />
      <Lines {...lines} fields={fields} />
      <div class="acts">
        <button type="submit" class="main" aria-disabled={isBusy}>
          Set them
        </button>
        <Action
          command={`${command} --unset`}
          confirm="Remove all that was set here? What holds one level up holds again."
          does={async () => {
            await put(null)
            clear()
            return "nothing is set here"
          }}
        >
          Unset all
        </Action>
        {tenant !== "*" && (
          <Action
            command={`${command} --set off`}
            confirm={`Turn all alerts about ${tenant} and its endpoints off?`}
            does={async () => {
              await put("off")
              return "all are off"
            }}
          >
            All off
          </Action>
        )}
      </div>
      {says !== undefined && <p role="status">{says}</p>}
      <Command
        text={`${command} --set ${quoted(JSON.stringify(alerts))}`}
        request={curlCommand(path, "PUT", { alerts })}
      />
    </form>
  )
}

/** When alerts are raised about a tenant, or about the system and whoever has no thresholds. */
export const Thresholds = ({ tenant }: { readonly tenant: string }) => {
  const asked = useAsked(`thresholds ${tenant}`, (options) => read(tenant, options))
  if (!may(tenant === "*" ? "operator" : "endpoints:write")) return null
  return (
    <>
      <h2>When alerts are raised{tenant === "*" ? "" : ` about ${tenant}`}</h2>
      <Answered asked={asked}>
        {(held) => <Changed key={tenant} asked={asked} held={held} tenant={tenant} />}
      </Answered>
    </>
  )
}
