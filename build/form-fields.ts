import { apiDocument } from "../src/api/document.ts"
import { circuitSettings } from "../src/domain/circuit.ts"
import type { Input } from "../src/domain/settings/setting.ts"
import { tenantSettings } from "../src/domain/settings/tenant-table.ts"
import { endpointInputs } from "../src/operations/endpoints/endpoint-settings.ts"
import { defaultThresholds } from "../src/policy/alert-thresholds.ts"
import { providers } from "../src/providers/providers.ts"
import type { Field, Kind } from "../ui/fields.ts"
import { nameOf, type Schema, type Schemas } from "./client-types.ts"

interface Documented {
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly schema: Schema }>>
  }
}

const document = apiDocument() as unknown as {
  readonly components: { readonly schemas: Schemas }
  readonly paths: Readonly<Record<string, Readonly<Record<string, Documented>>>>
}

/** A schema with the words that bound a number. */
interface Bounded extends Schema {
  readonly format?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly examples?: ReadonlyArray<unknown>
}

/** Returns what a reference refers to. */
const resolved = (schema: Schema): Bounded =>
  schema.$ref === undefined
    ? schema
    : resolved(document.components.schemas[nameOf(schema.$ref)] ?? {})

const partsOf = ({ properties = {} }: Schema, usual: (name: string) => string | undefined) =>
  Object.entries(properties).map(
    ([name, part]): Field => ({
      name,
      text: resolved(part).description ?? "",
      ...withUsual(usual(name)),
      kind: kindOf(part)
    })
  )

const withUsual = (usual: string | undefined) => (usual === undefined ? {} : { usual })

/** Returns what a field of a schema takes. */
const kindOf = (
  schema: Schema,
  usual: (name: string) => string | undefined = () => undefined
): Kind => {
  const {
    additionalProperties,
    anyOf,
    enum: options,
    items,
    properties,
    type,
    ...more
  } = resolved(schema)
  if (anyOf !== undefined) {
    const kinds = anyOf.map(resolved).filter((one) => one.type !== "null")
    const [only] = kinds
    if (only !== undefined && kinds.length === 1) return kindOf(only, usual)
    const group = kinds.find((one) => one.properties !== undefined)
    const isOff = kinds.some((one) => one.enum?.join() === "off")
    return isOff && group !== undefined
      ? { is: "parts", parts: partsOf(group, usual), mayBeOff: true }
      : { is: "any" }
  }
  if (properties !== undefined) return { is: "parts", parts: partsOf(resolved(schema), usual) }
  if (options !== undefined) return { is: "choice", options: options.map(String) }
  if (type === "boolean") return { is: "switch" }
  if (type === "array")
    return items?.enum === undefined
      ? { is: "list" }
      : { is: "choices", options: items.enum.map(String) }
  if (type === "integer" || type === "number")
    return {
      is: "number",
      ...(more.minimum === undefined ? {} : { least: more.minimum }),
      ...(more.maximum === undefined ? {} : { most: more.maximum })
    }
  if (typeof additionalProperties === "object")
    return JSON.stringify(additionalProperties).includes("true")
      ? { is: "names" }
      : { is: "entries" }
  if (more.format === "date-time") return { is: "time" }
  const [example] = more.examples ?? []
  return typeof example === "string" ? { is: "text", example } : { is: "text" }
}

const second = 1_000
const lengths = [
  [86_400 * second, "days"],
  [3_600 * second, "hours"],
  [60 * second, "minutes"],
  [second, "seconds"]
] as const

const lengthText = (ms: number): string => {
  const [of, unit] = lengths.find(([of]) => ms % of === 0) ?? [1, "milliseconds"]
  const count = ms / of
  return `${count} ${count === 1 ? unit.slice(0, -1) : unit}`
}

/** Fields of a circuit and of thresholds that are ms where they are filled in. */
const isLength = (name: string): boolean =>
  /^(coolDown|maxCoolDown|giveUpAfter|window|.*Time)$/.test(name)

/** Defaults as they stand in the API's answers. */
const usualOf = (defaults: object) => (name: string) => {
  const value: unknown = Object.entries(defaults).find(([key]) => key === name)?.[1]
  if (value === undefined) return undefined
  if (typeof value === "object")
    return JSON.stringify(value, (key, one: unknown) =>
      key === "over" ? lengthText(Number(one)) : one
    )
  return isLength(name) ? lengthText(Number(value)) : String(value)
}

const toggles =
  /^(circuitOpened|endpointDisabled|endpointSuspended|statusInARow|deliveriesMissing|diskFailed)$/
const usualThreshold = (name: string): string | undefined =>
  toggles.test(name) ? "on" : usualOf(defaultThresholds)(name)

const defaultsIn: Readonly<Record<string, (name: string) => string | undefined>> = {
  circuit: usualOf(circuitSettings()),
  alerts: () => undefined
}

/** A setting as its table has it, or what else may be asked for of an endpoint. */
type Entry = Input & Pick<Field, "initial"> & { readonly removal?: Field["removal"] | "null" }

/** Settings have more to say than a schema: how they are taken back, and whether they are secrets. */
const settingFields = (
  schemaName: string,
  table: Readonly<Record<string, Entry>>
): ReadonlyArray<Field> => {
  const { properties = {} } = document.components.schemas[schemaName] ?? {}
  const inputs: ReadonlyMap<string, Entry> = new Map(Object.entries(table))
  return Object.entries(properties).map(([name, schema]): Field => {
    const { initial, isSecret, removal = "never", text = "", usual } = inputs.get(name) ?? {}
    return {
      name,
      text,
      ...withUsual(usual),
      ...(removal === "null" ? {} : { removal }),
      ...(removal === "never" && initial !== undefined ? { initial } : {}),
      ...(isSecret === true ? { isSecret } : {}),
      kind: kindOf(schema, defaultsIn[name])
    }
  })
}

/** The fields of what an operation takes. */
const bodyFields = (
  path: string,
  method: string,
  usual: (name: string) => string | undefined = () => undefined
): ReadonlyArray<Field> => {
  const body = document.paths[path]?.[method]?.requestBody?.content["application/json"]?.schema
  const whole = resolved(body ?? {})
  const [first] = (whole.anyOf ?? []).map(resolved).filter((one) => one.properties !== undefined)
  const { properties = {} } = first ?? whole
  return Object.entries(properties).map(([name, schema]): Field => {
    const said = schema.description ?? resolved(schema).description ?? ""
    // The document has one sentence for both.
    const [, text = said, without] = /^(.*?) \(Default: (.*)\)$/s.exec(said) ?? []
    return { name, text, ...withUsual(without), kind: kindOf(schema, usual) }
  })
}

/** What the form of a job asks in its own way: which endpoint, and what would be sent. */
const askedElsewhere: ReadonlySet<string> = new Set(["endpoint", "all", "dryRun"])

/** The fields of a job that a form starts. */
const jobFields = (path: string): ReadonlyArray<Field> =>
  bodyFields(path, "post").filter(({ name }) => !askedElsewhere.has(name))

const secretsOfSources: ReadonlySet<string> = new Set(["secrets", "verifyToken", "apiKey"])

/** The fields of a source: its providers are known, and so is which of them are secrets. */
const sourceFields = (): ReadonlyArray<Field> =>
  bodyFields("/v1/tenants/{tenant}/sources/{id}", "post").map((field): Field => {
    if (field.name === "provider")
      return { ...field, kind: { is: "choice", options: [...providers.keys()] } }
    return secretsOfSources.has(field.name) ? { ...field, isSecret: true } : field
  })

const declared = (name: string, fields: ReadonlyArray<Field>): string =>
  `export const ${name}: ReadonlyArray<Field> = ${JSON.stringify(fields, null, 2)}\n`

/** Returns ui/generated/forms.ts: the fields of the pages' forms, as the API takes them. */
export const formFields = (): string =>
  [
    "/* Made from the settings and the operations by `npm run reference`. */\n",
    `import type { Field } from "../fields.ts"\n`,
    declared("endpointFields", settingFields("NewEndpoint", endpointInputs)),
    declared("tenantSettingFields", settingFields("TenantPatch", tenantSettings)),
    declared("sourceFields", sourceFields()),
    declared(
      "tenantThresholdFields",
      bodyFields("/v1/tenants/{tenant}/alert-thresholds", "put", usualThreshold)
    ),
    declared("systemThresholdFields", bodyFields("/v1/alert-thresholds", "put", usualThreshold)),
    declared("tokenFields", bodyFields("/v1/tenants/{tenant}/tokens", "post")),
    declared("portalLinkFields", bodyFields("/v1/tenants/{tenant}/portal-links", "post")),
    // Its other conditions are filters of the list.
    declared(
      "redeliveryFields",
      jobFields("/v1/tenants/{tenant}/redeliveries").filter(({ name }) => name === "reason")
    ),
    declared("replayFields", jobFields("/v1/tenants/{tenant}/replays")),
    declared("recoveryFields", jobFields("/v1/tenants/{tenant}/endpoints/{id}/recover")),
    declared("retryFields", jobFields("/v1/tenants/{tenant}/retries")),
    declared("auditFields", bodyFields("/v1/audits", "post"))
  ].join("\n")
