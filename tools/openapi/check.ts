import { createConfig, lintFromString } from "@redocly/openapi-core"
import { Ajv2020 } from "ajv/dist/2020.js"
import addFormats from "ajv-formats"

/** Returns what redocly's recommended rules find in a document, a line each. */
export const lint = async (document: unknown): Promise<ReadonlyArray<string>> => {
  const found = await lintFromString({
    source: JSON.stringify(document),
    absoluteRef: "/openapi.json",
    config: await createConfig({ extends: ["recommended"] })
  })
  return found.map(
    ({ location: [at], message, ruleId, severity }) =>
      `${severity} ${ruleId}: ${message} (${at?.pointer ?? "#"})`
  )
}

/** Returns a pointer to a part of a document: `#/paths/~1healthz/get`. */
export const pointerTo = (keys: ReadonlyArray<string>): string =>
  [
    "#",
    ...keys.map((key) => encodeURIComponent(key.replaceAll("~", "~0").replaceAll("/", "~1")))
  ].join("/")

/** Returns what is wrong with a value, or undefined. */
export type Check = (value: unknown) => string | undefined

/** Makes checks of values by the schemas of a document, each by a pointer to it. */
export const checksOf = (document: object): ((pointer: string) => Check) => {
  // Most checks are used a few times: to make them quickly is worth more than quick ones.
  const code = { optimize: false }
  const ajv = new Ajv2020({ strict: false, allErrors: false, inlineRefs: false, code })
  addFormats.default(ajv)
  ajv.addSchema(document, "petrel")
  const made = new Map<string, Check>()
  const make = (pointer: string): Check => {
    const validate = ajv.compile({ $ref: `petrel${pointer}` })
    return (value) => (validate(value) ? undefined : ajv.errorsText(validate.errors))
  }
  return (pointer) => {
    const known = made.get(pointer) ?? make(pointer)
    made.set(pointer, known)
    return known
  }
}

/** Returns the examples in a document that are not as the schema that has them, a line each. */
export const wrongExamples = (document: object): ReadonlyArray<string> => {
  const checkAt = checksOf(document)
  const look = (value: unknown, keys: ReadonlyArray<string>): ReadonlyArray<string> => {
    if (typeof value !== "object" || value === null) return []
    const inner = Object.entries(value).flatMap(([key, one]) => look(one, [...keys, key]))
    const { examples } = value as { readonly examples?: unknown }
    if (!Array.isArray(examples)) return inner
    const check = checkAt(pointerTo(keys))
    const own = examples.flatMap((one) => {
      const problem = check(one)
      return problem === undefined ? [] : [`${pointerTo(keys)}: ${problem}`]
    })
    return [...own, ...inner]
  }
  return look(document, [])
}
