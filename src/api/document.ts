import { existsSync, readFileSync } from "node:fs"
import { OpenApi } from "effect/http-api"
import { defaultLimit, maxLimit } from "../operations/parameters.ts"
import { Api } from "./api.ts"

type Json =
  | null
  | boolean
  | number
  | string
  | ReadonlyArray<Json>
  | { readonly [key: string]: Json }

const isObject = (value: unknown): value is { readonly [key: string]: Json } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Keys that say something of a schema and allow nothing. */
const annotations: ReadonlySet<string> = new Set(["title", "description", "examples", "default"])

const isAnnotation = (part: Json): part is { readonly [key: string]: Json } =>
  isObject(part) && Object.keys(part).every((key) => annotations.has(key))

/** What numbers beyond those of JSON are written as. No number of the API is one of them. */
const isNoJsonNumber = (part: Json): boolean =>
  isObject(part) && Array.isArray(part.enum) && part.enum.includes("NaN")

/** Puts what is said of a part of a schema on the schema itself, as far as nothing is said twice. */
const withoutParts = (schema: { readonly [key: string]: Json }): { [key: string]: Json } => {
  const { allOf, ...rest } = schema
  if (!Array.isArray(allOf)) return schema
  const whole: { [key: string]: Json } = { ...rest }
  for (const part of allOf) {
    if (!isObject(part)) return schema
    const isFree = Object.keys(part).every((key) => !Object.hasOwn(whole, key))
    if (!isFree && !isAnnotation(part)) return schema
    Object.assign(whole, part)
  }
  return whole
}

/** Whole numbers say as their bounds what JavaScript can count: that is no bound of theirs. */
const withoutSafeBounds = (schema: { readonly [key: string]: Json }): { [key: string]: Json } => {
  const { maximum, minimum, ...rest } = schema
  return maximum === Number.MAX_SAFE_INTEGER && minimum === Number.MIN_SAFE_INTEGER ? rest : schema
}

/** Choices that differ. One may be there twice where the API tells them apart by what they decode to. */
const different = (choices: ReadonlyArray<Json>): ReadonlyArray<Json> => [
  ...new Map(choices.map((one) => [JSON.stringify(one), one])).values()
]

/** The fields of which one has to be there, where a schema says no more of its choices. */
const choicesOf = (oneOf: Json | undefined): ReadonlyArray<string> =>
  Array.isArray(oneOf)
    ? oneOf.flatMap((one) =>
        isObject(one) && Object.keys(one).join() === "required" && Array.isArray(one.required)
          ? one.required.map(String)
          : []
      )
    : []

/** An object that has one of some fields, as one object for each of them: generators know no other. */
const withWholeChoices = (schema: { readonly [key: string]: Json }): { [key: string]: Json } => {
  const { description, examples, oneOf, properties, required, ...rest } = schema
  const choices = choicesOf(oneOf)
  if (choices.length === 0 || !isObject(properties)) return schema
  const wholeOf = (chosen: string) => ({
    ...rest,
    properties: Object.fromEntries(
      Object.entries(properties).filter(([name]) => name === chosen || !choices.includes(name))
    ),
    required: [...(Array.isArray(required) ? required : []), chosen]
  })
  return { description: description ?? "", examples: examples ?? [], oneOf: choices.map(wholeOf) }
}

/** A list of one kind that is not empty, as it is mostly written. */
const asPlainList = (schema: {
  readonly [key: string]: Json
}): { readonly [key: string]: Json } => {
  const { items, prefixItems, ...rest } = schema
  return Array.isArray(prefixItems) &&
    prefixItems.length === 1 &&
    JSON.stringify(prefixItems[0]) === JSON.stringify(items)
    ? { ...rest, items: items ?? {} }
    : schema
}

/** Says the same as a schema in the way that generators of clients and people read best. */
const readable = (value: Json): Json => {
  if (Array.isArray(value)) return value.map(readable)
  if (!isObject(value)) return value
  const inner = Object.fromEntries(Object.entries(value).map(([key, one]) => [key, readable(one)]))
  const { anyOf, ...rest } = inner
  const kinds = Array.isArray(anyOf)
    ? different(anyOf.filter((kind) => !isNoJsonNumber(kind)))
    : undefined
  const [only] = kinds ?? []
  const plain =
    kinds !== undefined && kinds.length === 1 && isObject(only)
      ? { ...only, ...rest }
      : kinds === undefined
        ? inner
        : { ...rest, anyOf: kinds }
  return withoutSafeBounds(asPlainList(withWholeChoices(withoutParts(plain))))
}

/**
 * Parameters that are numbers, by name: in a path or query they are decoded from texts, of which a
 * schema can say no more than that.
 */
const numbers: Record<string, Json> = {
  limit: {
    type: "integer",
    minimum: 1,
    maximum: maxLimit,
    description: `How many at most. (Default: ${defaultLimit})`
  },
  number: { type: "integer", minimum: 1, description: "The dead letter's number." }
}

const isBare = (schema: Json | undefined): boolean =>
  isObject(schema) && schema.type === "string" && Object.keys(schema).length === 1

const withNumbers = (value: Json): Json => {
  if (Array.isArray(value)) return value.map(withNumbers)
  if (!isObject(value)) return value
  const { in: place, name, schema } = value
  if (typeof place === "string" && typeof name === "string" && isBare(schema))
    return { ...value, schema: numbers[name] ?? schema ?? null }
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withNumbers(one)]))
}

/** Names of problems without the suffix of their encoded form. */
const withPlainNames = (text: string): string =>
  text.replaceAll(/"(#\/components\/schemas\/)?(\w+)Encoded"/g, '"$1$2"')

/** Descriptions of schemas stand at the parameter, too, where readers look for them. */
const withDescriptions = (value: Json): Json => {
  if (Array.isArray(value)) return value.map(withDescriptions)
  if (!isObject(value)) return value
  const inner = Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, withDescriptions(one)])
  )
  const { in: place, schema } = inner
  return typeof place === "string" && isObject(schema) && typeof schema.description === "string"
    ? { ...inner, description: schema.description }
    : inner
}

const header = (description: string, type: "integer" | "string"): Json => ({
  description,
  schema: { type }
})

const isNull = (schema: Json): boolean => isObject(schema) && schema.type === "null"

/** A body that may be null may be left out. */
const withOptionalBodies = (value: Json): Json => {
  if (Array.isArray(value)) return value.map(withOptionalBodies)
  if (!isObject(value)) return value
  const { content, required, ...rest } = value
  if (isObject(content) && required === true) {
    const { "application/json": media } = content
    const schema = isObject(media) ? media.schema : undefined
    const kinds = isObject(schema) && Array.isArray(schema.anyOf) ? schema.anyOf : []
    return { ...rest, content, required: !kinds.some(isNull) }
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, withOptionalBodies(one)])
  )
}

const anyMedia = "*/*"

/** What is of any media type is no text: a client reads JSON as JSON. */
const withAnyContent = (value: Json): Json => {
  if (Array.isArray(value)) return value.map(withAnyContent)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [
      key,
      key === anyMedia ? { schema: {} } : withAnyContent(one)
    ])
  )
}

/** Headers of answers, by their status. */
const headersByStatus: Record<string, Json> = {
  201: { Location: header("The path of what was made, if it has one.", "string") },
  202: { Location: header("The path of the job, if there is one.", "string") },
  401: { "WWW-Authenticate": header("How to authenticate.", "string") },
  405: { Allow: header("The methods that the path has.", "string") },
  429: { "Retry-After": header("Seconds until it is worth trying again.", "integer") },
  503: { "Retry-After": header("Seconds until it is worth trying again.", "integer") }
}

/** Headers of answers of a single operation, by its id. */
const headersByOperation: Record<string, Record<string, Json>> = {
  "events.publish": {
    200: {
      "Retry-After": header(
        "Seconds until it is worth sending the events of a batch again whose status is 503, if there are any.",
        "integer"
      )
    }
  }
}

/** What is added where an operation takes the header Idempotency-Key. */
const headersWithKey: Record<string, Json> = {
  409: {
    "Retry-After": header(
      "Seconds until it is worth trying again, if a request with the same Idempotency-Key is being carried out.",
      "integer"
    )
  }
}

const takesKey = (parameters: Json | undefined): boolean =>
  Array.isArray(parameters) &&
  parameters.some(
    (one) =>
      isObject(one) && one.in === "header" && String(one.name).toLowerCase() === "idempotency-key"
  )

/** Headers of answers to a token. */
const rateLimits: { readonly [key: string]: Json } = {
  RateLimit: header(
    'How many more requests the token may make now, and within how many seconds there are more: `"token";r=998;t=1`.',
    "string"
  ),
  "RateLimit-Policy": header(
    'How many requests the token may make in so many seconds: `"token";q=1000;w=1`.',
    "string"
  )
}

const saysRate = (status: string): boolean => /^2|^304$|^429$/.test(status)

/** Headers stand at the answers that have them. Their names are compared in lower case. */
const withHeaders = (value: Json): Json => {
  if (Array.isArray(value)) return value.map(withHeaders)
  if (!isObject(value)) return value
  const { operationId, parameters, responses, security } = value
  const needsToken = Array.isArray(security) && security.length > 0
  if (!isObject(responses))
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withHeaders(one)]))
  const answers = Object.entries(responses).map(([status, answer]) => {
    const ofStatus =
      headersByStatus[status] ?? (takesKey(parameters) ? headersWithKey[status] : undefined)
    const headers = {
      ...(isObject(ofStatus) ? ofStatus : {}),
      ...Object(headersByOperation[String(operationId)]?.[status]),
      ...(needsToken && saysRate(status) ? rateLimits : {})
    }
    return isObject(answer) && Object.keys(headers).length > 0
      ? [status, { ...answer, headers: { ...headers, ...Object(answer.headers) } }]
      : [status, answer]
  })
  return { ...value, responses: Object.fromEntries(answers) }
}

/** The members that each problem document has (RFC 9457). */
const problemTexts: ReadonlyMap<string, string> = new Map([
  ["type", "The kind of the problem: a name for programs, and no address."],
  ["title", "The kind of the problem, for people."],
  ["status", "The status of the answer."],
  ["detail", "What is wrong, and what to do about it."],
  ["instance", "What the problem is about."]
])

const isProblem = (properties: { readonly [key: string]: Json }): boolean =>
  [...problemTexts.keys()].every((name) => Object.hasOwn(properties, name))

/** The library names the members of a problem, and does not describe them. */
const withProblemTexts = (value: Json): Json => {
  if (Array.isArray(value)) return value.map(withProblemTexts)
  if (!isObject(value)) return value
  const { properties } = value
  if (isObject(properties) && isProblem(properties)) {
    const described = Object.entries(properties).map(([name, schema]) => [
      name,
      isObject(schema)
        ? {
            ...(problemTexts.has(name) ? { description: problemTexts.get(name) ?? "" } : {}),
            ...schema
          }
        : schema
    ])
    return { ...value, properties: Object.fromEntries(described) }
  }
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withProblemTexts(one)]))
}

/** In a package: the document, which `npm run build` has made. */
const packaged = new URL("./openapi.json", import.meta.url)

const makeDocument = (): Json =>
  [
    readable,
    withNumbers,
    withDescriptions,
    withOptionalBodies,
    withAnyContent,
    withHeaders,
    withProblemTexts
  ].reduce<Json>(
    (written, rewrite) => rewrite(written),
    JSON.parse(withPlainNames(JSON.stringify(OpenApi.fromApi(Api))))
  )

const documentOfProcess = (): Json =>
  existsSync(packaged) ? JSON.parse(readFileSync(packaged, "utf8")) : makeDocument()

let document: Json | undefined

/** Where a console is found that was started without options. */
const defaultServer = { url: "http://127.0.0.1:4280", description: "A console on this machine" }

/**
 * Returns the API's OpenAPI 3.1 document.
 *
 * @param url where the console is that answers with it. (Default: where one is without options)
 */
export const apiDocument = (url?: string): Json => {
  document ??= documentOfProcess()
  const servers = [url === undefined ? defaultServer : { url, description: "This console" }]
  return isObject(document) ? { ...document, servers } : document
}
