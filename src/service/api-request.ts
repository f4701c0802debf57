import { Result } from "effect"
import { parseExact } from "../api/exact-json.ts"
import type { BareProblem } from "../api/problems.ts"
import type { GetHeader } from "../domain/event.ts"
import { nobody } from "../domain/token.ts"
import { shortened } from "../operations/shown-value.ts"
import { bytesText } from "../operations/text/bytes.ts"
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

/** Upper bound of what path and query may take, bytes: as over HTTP, where headers have as much. */
const maxUrl = 16 * 1024

const invalid = (detail: string): BareProblem => ({
  status: 400,
  name: "invalid-request",
  title: "The request is not valid",
  detail
})

/** What a message says: fields, or the body as a whole. */
interface Said {
  readonly fields: Readonly<Record<string, unknown>>
  readonly whole: ReadonlyArray<unknown> | undefined
}

/** Parses a message: a JSON object, a list for an operation that takes one, or nothing. */
const readMessage = (body: Uint8Array, hasBody: boolean): Result.Result<Said, BareProblem> => {
  const text = textOf(body)
  if (text?.trim() === "") return Result.succeed({ fields: {}, whole: undefined })
  try {
    const value = parseExact(text ?? "")
    if (Array.isArray(value) && hasBody) return Result.succeed({ fields: {}, whole: value })
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return Result.succeed({ fields: { ...value }, whole: undefined })
  } catch {
    // Said below.
  }
  return Result.fail(invalid('the message must be a JSON object, such as {"id":"billing"}'))
}

const textIn = (value: unknown): string | undefined =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean"
    ? String(value)
    : undefined

/** What a URL takes for a step in its path: another operation would be asked for. */
const steps: ReadonlySet<string> = new Set([".", ".."])

/** Fills in the path. Returns what is wrong with its parameters, too. */
const pathWith = (path: string, values: Readonly<Record<string, unknown>>) => {
  const problems: Array<string> = []
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const text = textIn(values[name])
    if (text === undefined || text === "") problems.push(`${name} is missing`)
    else if (steps.has(text)) problems.push(`${name} must not be ${text}`)
    return encodeURIComponent(text ?? "")
  })
  return { filled, problems }
}

/** How much of a name is repeated that there is not, characters. */
const maxShownName = 64

/** Returns a sentence about a field of an operation that has parameters only. */
const unknownIn = ({ id, parameters }: ServiceOperation, name: string): string => {
  const names = parameters.flatMap((one) =>
    one.in === "header" || one.name === "tenant" ? [] : [one.name]
  )
  const near = nearestName(name, names)
  const advice =
    near === undefined ? `it has ${names.join(", ") || "none"}` : `did you mean ${near}?`
  return `${shortened(name, maxShownName)} is not a field of ${id}: ${advice}`
}

/**
 * Returns the tenant that a token of the subject stands for: `_` for all of them. A client may send
 * `*` itself, which is no name of a tenant.
 */
export const tenantIn = (token: string): string => {
  if (token === nobody) return allTenants
  return token === allTenants ? nobody : token
}

/**
 * Returns what a message asks the API for. The message is a JSON object with the parameters of path
 * and query by their names, beside the fields of the body, or a list as the body; parameters in
 * headers are headers of the message. No operation has a parameter and a field of one name.
 *
 * @param tenant from the subject.
 */
export const apiRequest = (
  operation: ServiceOperation,
  tenant: string,
  message: { readonly body: Uint8Array; readonly header: GetHeader }
): Result.Result<ApiRequest, BareProblem> =>
  Result.flatMap(readMessage(message.body, operation.hasBody), ({ fields, whole }) => {
    const { hasBody, method, parameters, path } = operation
    if ("tenant" in fields)
      return Result.fail(invalid("tenant is not a field: the subject names it"))
    const placeOf = new Map(parameters.map(({ in: place, name }) => [name, place]))
    const query = new URLSearchParams()
    const body: Record<string, unknown> = {}
    for (const [name, value] of Object.entries(fields)) {
      const place = placeOf.get(name)
      if (place === "query") query.append(name, textIn(value) ?? JSON.stringify(value))
      else if (place !== "path" && hasBody) body[name] = value
      else if (place !== "path") return Result.fail(invalid(unknownIn(operation, name)))
    }
    const { filled, problems } = pathWith(path, { ...fields, tenant })
    if (problems.length > 0) return Result.fail(invalid(problems.join("; ")))
    const text = hasBody ? JSON.stringify(whole ?? body) : undefined
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
    const url = search === "" ? filled : `${filled}?${search}`
    return url.length > maxUrl
      ? Result.fail(invalid(`its parameters take more than ${bytesText(maxUrl)}: ask for less`))
      : Result.succeed({ ...{ method, headers, body: text }, url })
  })
