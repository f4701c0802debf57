import { isUtf8 } from "node:buffer"
import { Result } from "effect"
import { JsonScanner } from "../api/json-scanner.ts"
import type { BareProblem } from "../api/problems.ts"
import type { GetHeader } from "../domain/header-names.ts"
import { nobody } from "../domain/token.ts"
import { shortened } from "../operations/input-words.ts"
import { allTenants } from "../operations/token.ts"
import { nearestName } from "../policy/nearest-name.ts"
import { bytesText } from "../text/quantities.ts"
import type { ServiceOperation } from "./operations.ts"

/** A request of the HTTP API. */
interface ApiRequest {
  readonly method: string
  /** Path and query. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Undefined where there is none. */
  readonly body: Uint8Array | undefined
}

/** Upper bound of what path and query may take, bytes: as over HTTP, where headers have as much. */
const maxUrl = 16 * 1024

const invalid = (detail: string): BareProblem => ({
  status: 400,
  name: "invalid-request",
  title: "The request is not valid",
  detail
})

/** Fields of a message that are looked at: far more than any operation has. */
const maxFields = 10_000

/** What a message says: fields by their names, each as it is written, or the body as a whole. */
interface Said {
  readonly fields: ReadonlyMap<string, Uint8Array>
  readonly whole: Uint8Array | undefined
}

const tooLong = invalid(`its parameters take more than ${bytesText(maxUrl)}: ask for less`)

/** What a header of HTTP may hold. */
const latin1 = /^[\t\x20-\x7e\x80-\xff]*$/

const noObject = invalid('the message must be a JSON object, such as {"id":"billing"}')

const opensList = 0x5b
const opensObject = 0x7b

/** Reads a message: a JSON object, a list for an operation that takes one, or nothing. */
const readMessage = (body: Uint8Array, hasBody: boolean): Result.Result<Said, BareProblem> => {
  const first = body.find((byte) => byte > 0x20)
  const none: ReadonlyMap<string, Uint8Array> = new Map()
  if (first === undefined) return Result.succeed({ fields: none, whole: undefined })
  // The API reads it.
  if (first === opensList && hasBody) return Result.succeed({ fields: none, whole: body })
  const scanner = new JsonScanner(body, { elements: 1, members: maxFields })
  scanner.run(body.length)
  const [element] = scanner.elements
  if (
    first !== opensObject ||
    element === undefined ||
    scanner.problem !== undefined ||
    !isUtf8(body)
  )
    return Result.fail(noObject)
  const { members } = element
  if (members.length > maxFields)
    return Result.fail(invalid(`the message has more than ${maxFields} fields`))
  const named = members.map(
    ({ end, keyEnd, keyStart, start }) =>
      [String(parsed(body.subarray(keyStart, keyEnd))), body.subarray(start, end)] as const
  )
  return Result.succeed({ fields: new Map(named), whole: undefined })
}

const parsed = (json: Uint8Array): unknown => JSON.parse(Buffer.from(json).toString("utf8"))

/** Returns a value of a parameter as it stands in a URL: texts without quotes. */
const textIn = (json: Uint8Array): string => {
  const text = Buffer.from(json).toString("utf8")
  return text.startsWith('"') ? String(JSON.parse(text)) : text
}

/** Returns the values of a parameter of a query: those of a list, or the only one. */
const textsIn = (json: Uint8Array): ReadonlyArray<string> => {
  if (json[0] !== opensList) return [textIn(json)]
  const values: ReadonlyArray<unknown> = JSON.parse(Buffer.from(json).toString("utf8"))
  return values.map((value) => (typeof value === "string" ? value : JSON.stringify(value)))
}

const comma = Buffer.from(",")

/** Returns an object with these fields, each as it is written. */
const objectOf = (fields: ReadonlyArray<readonly [name: string, json: Uint8Array]>): Uint8Array =>
  Buffer.concat([
    Buffer.from("{"),
    ...fields.flatMap(([name, json], index) => [
      ...(index === 0 ? [] : [comma]),
      Buffer.from(`${JSON.stringify(name)}:`),
      json
    ]),
    Buffer.from("}")
  ])

/** What a URL takes for a step in its path: another operation would be asked for. */
const steps: ReadonlySet<string> = new Set([".", ".."])

/** Returns what is wrong with a parameter of a path, or undefined. */
const stepProblem = (name: string, text: string): string | undefined => {
  if (text === "" || text === "null") return `${name} is missing`
  if (!text.isWellFormed())
    return `${name} must be text in Unicode, without half a pair of surrogates`
  return steps.has(text) ? `${name} must not be ${text}` : undefined
}

/** Fills in the path. Returns what is wrong with its parameters, too. */
const pathWith = (path: string, values: ReadonlyMap<string, string>) => {
  const problems: Array<string> = []
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const text = values.get(name) ?? ""
    const problem = stepProblem(name, text)
    if (problem === undefined) return encodeURIComponent(text)
    problems.push(problem)
    return ""
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
    // What is of no tenant may have one among the fields of its body, as an audit.
    if (fields.has("tenant") && path.includes("{tenant}"))
      return Result.fail(invalid("tenant is not a field: the subject names it"))
    const placeOf = new Map(parameters.map(({ in: place, name }) => [name, place]))
    const query = new URLSearchParams()
    const steps = new Map([["tenant", tenant]])
    const body: Array<readonly [name: string, json: Uint8Array]> = []
    for (const [name, json] of fields) {
      const place = placeOf.get(name)
      if (place === "query" || place === "path") {
        if (json.length > maxUrl) return Result.fail(tooLong)
        if (place === "query") for (const text of textsIn(json)) query.append(name, text)
        // An object or a list is none, and so it is missing.
        else if (json[0] !== opensObject && json[0] !== opensList) steps.set(name, textIn(json))
      } else if (hasBody) body.push([name, json])
      else return Result.fail(invalid(unknownIn(operation, name)))
    }
    const { filled, problems } = pathWith(path, steps)
    if (problems.length > 0) return Result.fail(invalid(problems.join("; ")))
    const bytes = hasBody ? (whole ?? objectOf(body)) : undefined
    const headers: Record<string, string> =
      bytes === undefined
        ? {}
        : { "content-type": "application/json", "content-length": String(bytes.length) }
    for (const { in: place, name } of parameters) {
      const value = place === "header" ? message.header(name) : undefined
      if (value === undefined) continue
      if (!latin1.test(value))
        return Result.fail(invalid(`the header ${name} must be Latin-1, as over HTTP`))
      headers[name] = value
    }
    const search = query.toString()
    const url = search === "" ? filled : `${filled}?${search}`
    return url.length > maxUrl
      ? Result.fail(tooLong)
      : Result.succeed({ ...{ method, headers, body: bytes }, url })
  })
