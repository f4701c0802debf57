import { apiDocument } from "../src/api/document.ts"
import { listedOperations } from "../src/api/groups.ts"
import {
  comment,
  declarationOf,
  fieldsOf,
  key,
  nameOf,
  reachable,
  type Schema,
  type Schemas,
  typeOf
} from "./client-types.ts"

interface Media {
  readonly schema: Schema
}
interface Parameter {
  readonly name: string
  readonly in: "header" | "path" | "query"
  readonly required?: boolean
  readonly schema: Schema
}
interface Documented {
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  readonly parameters?: ReadonlyArray<Parameter>
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> }
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, Media>> }>
  >
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Documented>>>>
  readonly components: { readonly schemas: Schemas }
}

const document = apiDocument() as unknown as Document
const { schemas } = document.components
const documented = new Map(
  Object.values(document.paths)
    .flatMap((methods) => Object.values(methods))
    .map((one) => [one.operationId, one] as const)
)

const made = "/* Made from the operations by `npm run reference`. */\n"

/** What programs call by functions of their own (src/client/publishing.ts, live.ts). */
const writtenByHand = new Set(["events.publish", "events.publishRaw", "deliveries.live"])

const problemRoot = "urn:petrel:problem:"
const problemOf = ({ properties }: Schema): string | undefined => {
  const [type] = properties?.type?.enum ?? []
  return typeof type === "string" && type.startsWith(problemRoot)
    ? type.slice(problemRoot.length)
    : undefined
}

const jsonOf = (content: Readonly<Record<string, Media>> | undefined): Schema | undefined =>
  content?.["application/json"]?.schema

const isSuccess = (status: string): boolean => status.startsWith("2")

/** Returns the schemas of what a success is answered with, by status. */
const answersOf = ({ responses }: Documented): ReadonlyMap<string, Schema> =>
  new Map(
    Object.entries(responses).flatMap(([status, { content }]) => {
      const schema = jsonOf(content)
      return isSuccess(status) && schema !== undefined ? [[status, schema] as const] : []
    })
  )

/** The schema of a body, without the null that says that there may be none. */
const bodyOf = ({ requestBody }: Documented): Schema | undefined => {
  const schema = jsonOf(requestBody?.content)
  const kinds = schema?.anyOf?.filter(({ type }) => type !== "null")
  return kinds?.length === 1 ? kinds[0] : schema
}

/** The field of a page that has its items. */
const listField = (one: Documented): string | undefined => {
  if (!(one.parameters ?? []).some(({ name }) => name === "cursor")) return undefined
  const page = schemas[nameOf(answersOf(one).get("200")?.$ref ?? "")]
  const lists = Object.entries(page?.properties ?? {}).filter(([, { type }]) => type === "array")
  const [[name] = [], ...others] = lists
  if (name === undefined || others.length > 0)
    throw new Error(`${one.operationId} has a cursor, and its page not one list`)
  return name
}

const camel = (header: string): string =>
  header.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())

const optionOf = ({ name, schema }: Parameter): string => {
  const text = schema.description?.split("\n")[0]
  const type = name === "if-match" ? "string | number" : typeOf(schema, "sent")
  const types = name === "if-none-match" && schema.enum === undefined ? "string | number" : type
  return `${comment(text, "      ")}      readonly ${camel(name)}?: ${types} | undefined\n`
}

const textOf = (one: Documented, id: string): string => {
  const { operation } = listedOperations.find((listed) => listed.id === id) ?? {}
  const { refusals = [], scope } = operation ?? {}
  return [
    one.summary,
    ...(one.description === undefined ? [] : ["", one.description]),
    "",
    [
      ...(scope === undefined ? [] : [`Scope: ${scope}.`]),
      ...(refusals.length === 0 ? [] : [`Refused with ${refusals.join(", ")}.`])
    ].join(" ")
  ]
    .join("\n")
    .trimEnd()
}

/** A parameter that may be repeated may also be one value. */
const repeatable = (schema: Schema): Schema =>
  schema.type === "array" && schema.items !== undefined
    ? { anyOf: [schema.items, schema], description: schema.description ?? "" }
    : schema

/** Returns the type of what is given to a call. */
const inputOf = (one: Documented): { readonly type: string; readonly isNeeded: boolean } => {
  const { parameters = [] } = one
  const own = parameters.filter(({ in: place, name }) => place !== "header" && name !== "cursor")
  const body = bodyOf(one)
  const isNeeded = (schema: Schema | undefined): boolean =>
    schema?.$ref === undefined
      ? (schema?.required ?? []).length > 0 || schema?.oneOf !== undefined
      : isNeeded(schemas[nameOf(schema.$ref)])
  const required = own.filter(({ name, required }) => required === true && name !== "tenant")
  const fields = fieldsOf(
    Object.fromEntries(
      own.map(({ name, schema }) => [
        name,
        name === "tenant"
          ? { type: "string", description: "Another tenant than the client's." }
          : repeatable(schema)
      ])
    ),
    required.map(({ name }) => name),
    "sent",
    "      "
  )
  const parts = [
    ...(fields === "" ? [] : [`{\n${fields}    }`]),
    ...(body === undefined ? [] : [typeOf(body, "sent", "    ")])
  ]
  return {
    type: parts.length === 0 ? "{}" : parts.join(" & "),
    isNeeded: required.length > 0 || isNeeded(body)
  }
}

/** @param without the header that such a call does not have. */
const optionsOf = ({ parameters = [] }: Documented, without?: string): string => {
  const headers = parameters
    .filter(({ in: place, name }) => place === "header" && name !== without)
    .map(optionOf)
  if (without !== undefined) headers.push(`      readonly ${camel(without)}?: undefined\n`)
  return headers.length === 0 ? "CallOptions" : `CallOptions & {\n${headers.join("")}    }`
}

/** Returns the signatures of a call. */
const methodOf = (one: Documented): string => {
  const name = one.operationId.slice(one.operationId.indexOf(".") + 1)
  const { isNeeded, type } = inputOf(one)
  const answers = answersOf(one)
  const text = comment(textOf(one, one.operationId), "    ")
  const signature = (input: string, answer: string, options = optionsOf(one)) =>
    `${text}    ${name}(input${isNeeded ? "" : "?"}: ${input}, options?: ${options}): ${answer}\n`
  const list = listField(one)
  if (list !== undefined) {
    const page = nameOf(answers.get("200")?.$ref ?? "")
    return signature(type, `List<${page}["${list}"][number], ${page}>`)
  }
  const [plan, job] = [answers.get("200"), answers.get("202")]
  if (plan !== undefined && job !== undefined)
    return [
      signature(`${type} & { readonly dryRun: true }`, `Promise<${typeOf(plan, "received")}>`),
      signature(
        `${type} & { readonly dryRun?: false | undefined }`,
        `Promise<${typeOf(job, "received")}>`
      )
    ].join("")
  const types = [...answers.values()].map((schema) => typeOf(schema, "received", "    "))
  if (answers.size === 0) return signature(type, "Promise<Bytes>")
  const answer = [...new Set(types)].join(" | ")
  if (!("304" in one.responses)) return signature(type, `Promise<${answer}>`)
  // Only who names what it has may be answered that it is still so.
  const header = "if-none-match"
  return [
    signature(type, `Promise<${answer}>`, optionsOf(one, header)),
    signature(type, `Promise<${answer} | undefined>`)
  ].join("")
}

const groupsOf = (): ReadonlyMap<string, ReadonlyArray<Documented>> => {
  const groups = new Map<string, Array<Documented>>()
  for (const { id } of listedOperations) {
    const one = documented.get(id)
    if (one === undefined) throw new Error(`the document lacks ${id}`)
    const [group = ""] = id.split(".")
    groups.set(group, [...(groups.get(group) ?? []), one])
  }
  return groups
}

/** Returns src/client/generated/schemas.ts: the types of what is sent and answered. */
export const clientSchemas = (): string => {
  const sent = reachable(
    schemas,
    [...documented.values()].map(({ requestBody }) => requestBody)
  )
  const answered = reachable(
    schemas,
    [...documented.values()].map((one) => [...answersOf(one).values()])
  )
  const names = Object.keys(schemas)
    .filter((name) => sent.has(name) || answered.has(name))
    .sort()
  const codes = [
    ...new Set(Object.values(schemas).flatMap((schema) => problemOf(schema) ?? []))
  ].sort()
  return [
    made,
    ...names.map((name) =>
      declarationOf(name, schemas[name] ?? {}, sent.has(name) ? "sent" : "received")
    ),
    `/** What the API refuses a request for. */\nexport type ApiProblemCode =\n${codes
      .map((code) => `  | ${JSON.stringify(code)}\n`)
      .join("")}`
  ].join("\n")
}

/** Returns what the client has to know of an operation while it runs. */
const rowOf = ({ id, operation, path }: (typeof listedOperations)[number]): string => {
  const one = documented.get(id)
  const names = (fields: object | undefined) => Object.keys(fields ?? {})
  const list = one === undefined ? undefined : listField(one)
  const { headers, insteadOverNats, media, method, payload, query, scope } = operation
  const row: Record<string, unknown> = {
    method,
    path,
    ...(names(query).length === 0 ? {} : { query: names(query) }),
    ...(names(headers).length === 0 ? {} : { headers: names(headers) }),
    ...(payload === undefined ? {} : { hasBody: true }),
    ...(list === undefined ? {} : { list }),
    ...(media === "*/*" ? { isBytes: true } : {}),
    ...(scope === undefined ? { isOpen: true } : {}),
    ...(insteadOverNats === undefined ? {} : { insteadOverNats })
  }
  const fields = Object.entries(row).map(
    ([name, value]) => `${key(name)}: ${JSON.stringify(value)}`
  )
  return `  ${JSON.stringify(id)}: { ${fields.join(", ")} }`
}

/** Returns src/client/generated/operations.ts: the calls, and the table that they are made by. */
export const clientOperations = (): string => {
  const bodies = [...groupsOf()]
    .map(
      ([group, all]) => [group, all.filter((one) => !writtenByHand.has(one.operationId))] as const
    )
    .filter(([, all]) => all.length > 0)
    .map(([group, all]) => `  readonly ${group}: {\n${all.map(methodOf).join("")}  }\n`)
    .join("")
  const code = bodies.replaceAll(/\/\*\*.*?\*\//gs, "")
  const named = Object.keys(schemas)
    .filter((name) => new RegExp(`\\b${name}\\b`).test(code))
    .sort()
  return [
    made,
    `import type { Bytes, CallOptions, Described, List } from "../operation.ts"`,
    `import type {\n${named.map((name) => `  ${name}`).join(",\n")}\n} from "./schemas.ts"\n`,
    "/** All calls but publishing and following, by group. */",
    `export interface Operations {\n${bodies}}\n`,
    "/** How each operation is asked for. */",
    `export const operations = {\n${listedOperations.map(rowOf).join(",\n")}\n} as const satisfies Readonly<Record<string, Described>>\n`
  ].join("\n")
}
