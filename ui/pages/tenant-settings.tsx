import type { CallOptions, TenantSettings } from "../../src/client/client.ts"
import { endpointCommand } from "../command-line.ts"
import { curlCommand } from "../curl.ts"
import { useAsked } from "../data.ts"
import { type Field, formOf } from "../fields.ts"
import { ChangeForm } from "../form.tsx"
import { shownTenant } from "../frame.tsx"
import { tenantSettingFields } from "../generated/forms.ts"
import { Answered, Command } from "../parts.tsx"
import { may, petrel } from "../session.ts"

const read = (tenant: string, options: CallOptions = {}): Promise<TenantSettings> =>
  tenant === "*" ? petrel.settings.system({}, options) : petrel.settings.tenant({ tenant }, options)

const valueText = (value: unknown): string =>
  Array.isArray(value) ? value.join(", ") : String(value)

/** What holds where nothing of its own is set: what the system has set, else the default. */
const fieldsFor = ({ system }: TenantSettings): ReadonlyArray<Field> =>
  tenantSettingFields.map((field) => {
    const value = (system as Readonly<Record<string, unknown>> | undefined)?.[field.name]
    const isSet = value !== undefined && !(Array.isArray(value) && value.length === 0)
    return isSet ? { ...field, usual: `${valueText(value)}, of the system` } : field
  })

const Changed = ({
  again,
  held,
  tenant
}: {
  readonly again: () => void
  readonly held: TenantSettings
  readonly tenant: string
}) => {
  const isSystem = tenant === "*"
  const fields = fieldsFor(held)
  return (
    <ChangeForm
      again={again}
      fields={fields}
      held={held}
      read={() => read(tenant)}
      save={async (patch, options) => {
        const { changed } = await (isSystem
          ? petrel.settings.changeSystem(patch, options)
          : petrel.settings.changeTenant({ ...patch, tenant }, options))
        return changed
      }}
      command={(patch) => ({
        text: endpointCommand("set", isSystem ? "--system" : tenant, fields, patch).replace(
          "petrel endpoint",
          "petrel tenant"
        ),
        request: curlCommand(
          isSystem ? "/v1/settings" : `/v1/tenants/${tenant}/settings`,
          "PATCH",
          patch
        )
      })}
    />
  )
}

/** What is set, for who may not change it. */
const Shown = ({ held }: { readonly held: TenantSettings }) => {
  const fields = fieldsFor(held)
  const typed = formOf(fields, held as unknown as Record<string, unknown>)
  return (
    <section class="card">
      <dl class="facts">
        {fields.map(({ name, text, usual }) => (
          <>
            <dt>{name}</dt>
            <dd>
              {typed[name] || usual} <small>{text}</small>
            </dd>
          </>
        ))}
      </dl>
    </section>
  )
}

/** Settings for all endpoints of a tenant together, or of the system. */
export const Settings = () => {
  const tenant = shownTenant()
  const asked = useAsked(`settings ${tenant}`, (options) => read(tenant, options))
  return (
    <>
      <h1>{tenant === "*" ? "Settings of the system" : `Settings of ${tenant}`}</h1>
      <p class="lead">
        {tenant === "*"
          ? "They hold for the endpoints of all tenants together, and for tenants without settings of their own. Choose a tenant above for its own."
          : "They hold for all endpoints of the tenant together. An empty field means the value of the system."}
      </p>
      <Answered asked={asked}>
        {(held) =>
          may("operator") ? (
            <Changed key={tenant} again={asked.again} held={held} tenant={tenant} />
          ) : (
            <Shown held={held} />
          )
        }
      </Answered>
      {!may("operator") && (
        <Command
          text={`petrel tenant show ${tenant}`}
          request={curlCommand(`/v1/tenants/${tenant}/settings`)}
        />
      )}
    </>
  )
}
