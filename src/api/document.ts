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

/** Puts what is said of a part of a schema on the schema itself. */
const withoutParts = (schema: { readonly [key: string]: Json }): { [key: string]: Json } => {
  const { allOf, ...rest } = schema
  if (!Array.isArray(allOf) || !allOf.every(isAnnotation)) return schema
  const texts: ReadonlyArray<{ readonly [key: string]: Json }> = allOf
  return Object.assign({}, rest, ...texts)
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
  const kinds = Array.isArray(anyOf) ? anyOf.filter((kind) => !isNoJsonNumber(kind)) : undefined
  const [only] = kinds ?? []
  const plain =
    kinds !== undefined && kinds.length === 1 && isObject(only)
      ? { ...only, ...rest }
      : kinds === undefined
        ? inner
        : { ...rest, anyOf: kinds }
  return asPlainList(withoutParts(plain))
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
  number: { type: "integer", minimum: 1, description: "The dead letter's number." },
  status: {
    type: "integer",
    minimum: 100,
    maximum: 599,
    description: "The status of the last answer."
  }
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

let made: Json | undefined

/** Returns the API's OpenAPI 3.1 document. */
export const apiDocument = (): Json => {
  made ??= withDescriptions(
    withNumbers(readable(JSON.parse(withPlainNames(JSON.stringify(OpenApi.fromApi(Api))))))
  )
  return made
}
