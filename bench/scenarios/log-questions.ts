/* What the scenario log-asked asks: each list and get of the OpenAPI document. */
import type { Question } from "../programs/asker.ts"

/** An OpenAPI document, as far as questions are made from it. */
interface Document {
  readonly paths: Readonly<Record<string, { readonly get?: { readonly operationId: string } }>>
}

/**
 * Values of the parameters of paths that there are, by their names. Those that several kinds of things
 * share (`id`, `number`, `job`) are by the list that has them: `endpoints`, `dead-letters`, `replays`.
 */
export type Known = Readonly<Record<string, string>>

/** Operations that are not asked, and why. */
const excluded: Readonly<Record<string, string>> = {
  "deliveries.live": "a stream that does not end"
}

/** With which filters an operation is asked, beside none. EVENT is one that is there. */
const filters: Readonly<Record<string, ReadonlyArray<string>>> = {
  "log.list": [
    ...["endpoint=e3", "type=type3&limit=200", "state=dead-lettered", "status=418"],
    ...["state=waiting", "event=EVENT", "event=unknown", "event=bench-*"]
  ],
  "log.attempts": ["endpoint=e3&status=2xx", "status=418", "error=timeout"],
  "log.events": ["type=type3", "type=absent"],
  "log.endpointStats": ["by=hour"],
  "deadLetters.list": ["endpoint=refusing", "endpoint=unknown"]
}

/** Unknown values of what is no free text, by the name of the parameter. */
const unknown: Known = { delivery: "unknown.e0", number: "999999999999" }

/** Names of parameters that several kinds of things share. */
const shared = new Set(["id", "number", "job"])

/** A parameter of a path. */
interface Parameter {
  readonly name: string
  /** Which known value it is. */
  readonly key: string
}

const parametersOf = (path: string): ReadonlyArray<Parameter> => {
  const parts = path.split("/")
  return parts.flatMap((part, at) => {
    const name = /^\{(\w+)\}$/.exec(part)?.[1]
    if (name === undefined) return []
    return [{ name, key: shared.has(name) ? (parts[at - 1] ?? "") : name }]
  })
}

/** Returns a path with values instead of its parameters. */
const filled = (path: string, value: (parameter: Parameter) => string): string =>
  parametersOf(path).reduce((text, one) => text.replace(`{${one.name}}`, value(one)), path)

/**
 * Returns the questions: each operation of the document that reads, with each of its filters, and
 * where it has an id, with one that is there and one that is not.
 *
 * @throws where no value of a parameter is known, or an exclusion or filter is of no such operation.
 */
export const questionsOf = (document: unknown, known: Known): ReadonlyArray<Question> => {
  const gets = Object.entries((document as Document).paths).flatMap(([path, { get }]) =>
    get === undefined ? [] : [{ path, id: get.operationId }]
  )
  for (const id of [...Object.keys(excluded), ...Object.keys(filters)])
    if (!gets.some((get) => get.id === id)) throw new Error(`log-asked: there is no ${id}`)
  const tenant = known.tenant ?? ""
  const nameOf = (path: string) =>
    path.replace(`/v1/tenants/${tenant}/`, "").replace(/^\/v1\//, "v1/")
  const questionsAbout = ({ id, path }: { readonly id: string; readonly path: string }) => {
    const there = filled(path, ({ key }) => {
      const value = known[key]
      if (value === undefined) throw new Error(`log-asked: no value of ${key} is known for ${id}`)
      return value
    })
    const shown = filled(path, ({ name }) => (name === "tenant" ? tenant : name.toUpperCase()))
    const absent = filled(path, ({ name }) =>
      name === "tenant" ? tenant : (unknown[name] ?? "unknown")
    )
    const queries = ["", ...(filters[id] ?? []).map((filter) => `?${filter}`)]
    const questions = queries.map((query) => ({
      name: nameOf(`${shown}${query}`),
      path: `${there}${query.replace("EVENT", known.event ?? "")}`,
      isUnknown: false
    }))
    return shown === there && absent === there
      ? questions
      : [...questions, { name: nameOf(absent), path: absent, isUnknown: true }]
  }
  return gets.filter(({ id }) => !(id in excluded)).flatMap(questionsAbout)
}
