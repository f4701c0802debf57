import { Result } from "effect"
import { parseExact } from "../api/exact-json.ts"
import type { BareProblem } from "../api/problems.ts"
import type { GetHeader } from "../domain/event.ts"
import { nobody } from "../domain/token.ts"
import { textOf } from "../operations/text/utf8.ts"
import { allTenants } from "../operations/tokens/token.ts"
import { nearestName } from "../policy/nearest-name.ts"
import type { ServiceOperation } from "./operations.ts"

/** A request of the HTTP API. */
export interface ApiRequest {
  readonly method: string
  /** Path and query. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Undefined where there is none. */
  readonly body: string | undefined
}

const invalid = (detail: string): BareProblem => ({
  status: 400,
  name: "invalid-request",
  title: "The request is not valid",
  detail
})

/** Parses the body of a message: a JSON object, or nothing. */
const fieldsOf = (
  body: Uint8Array
): Result.Result<Readonly<Record<string, unknown>>, BareProblem> => {
  const text = textOf(body)
  if (text?.trim() === "") return Result.succeed({})
  try {
    const value = parseExact(text ?? "")
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return Result.succeed({ ...value })
  } catch {
    // Said below.
  }
  return Result.fail(
    invalid('the message must be a JSON object of parameters and `body`, such as {"id":"billing"}')
  )
}

const textIn = (value: unknown): string | undefined =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean"
    ? String(value)
    : undefined

/** Fills in the path. Returns the names of parameters that are missing or no texts, too. */
const pathWith = (path: string, values: Readonly<Record<string, unknown>>) => {
  const missing: Array<string> = []
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const text = textIn(values[name])
    if (text === undefined || text === "") missing.push(name)
    return encodeURIComponent(text ?? "")
  })
  return { filled, missing }
}

/** Returns a sentence about a field that an operation does not have. */
const unknownIn = (
  { hasBody, id, parameters }: ServiceOperation,
  given: object
): string | undefined => {
  const names = [
    ...parameters.flatMap((one) =>
      one.in === "header" || one.name === "tenant" ? [] : [one.name]
    ),
    ...(hasBody ? ["body"] : [])
  ]
  const unknown = Object.keys(given).find((name) => !names.includes(name))
  if (unknown === undefined) return undefined
  if (unknown === "tenant") return "tenant is not a field: the subject names it"
  const near = nearestName(unknown, names)
  const advice =
    near === undefined ? `it has ${names.join(", ") || "none"}` : `did you mean ${near}?`
  return `${unknown} is not a field of ${id}: ${advice}`
}

/** Returns the tenant that a token of the subject stands for: `_` for all of them. */
export const tenantIn = (token: string): string => (token === nobody ? allTenants : token)

/**
 * Returns what a message asks the API for. The message is a JSON object with the parameters of path
 * and query by their names, and `body`; parameters in headers are headers of the message.
 *
 * @param tenant from the subject.
 */
export const apiRequest = (
  operation: ServiceOperation,
  tenant: string,
  message: { readonly body: Uint8Array; readonly header: GetHeader }
): Result.Result<ApiRequest, BareProblem> =>
  Result.flatMap(fieldsOf(message.body), ({ body, ...given }) => {
    const { method, parameters, path } = operation
    const { filled, missing } = pathWith(path, { ...given, tenant })
    if (missing.length > 0)
      return Result.fail(invalid(missing.map((name) => `${name} is missing`).join("; ")))
    const unknown = unknownIn(operation, { ...given, ...(body === undefined ? {} : { body }) })
    if (unknown !== undefined) return Result.fail(invalid(unknown))
    const inPath = new Set(parameters.filter((one) => one.in === "path").map(({ name }) => name))
    const query = new URLSearchParams()
    for (const [name, value] of Object.entries(given))
      if (!inPath.has(name)) query.append(name, textIn(value) ?? JSON.stringify(value))
    const text = body === undefined ? undefined : JSON.stringify(body)
    const headers: Record<string, string> =
      text === undefined
        ? {}
        : {
            "content-type": "application/json",
            "content-length": String(Buffer.byteLength(text))
          }
    for (const { in: place, name } of parameters) {
      const value = place === "header" ? message.header(name) : undefined
      if (value !== undefined) headers[name] = value
    }
    const search = query.toString()
    return Result.succeed({
      ...{ method, headers, body: text },
      url: search === "" ? filled : `${filled}?${search}`
    })
  })
