import { listedOperations } from "../../src/api/groups.ts"

const numberIn = (name: string): number | undefined =>
  process.env[name] === undefined ? undefined : Number(process.env[name])

/** What `npm run fuzz` asks for (test/fuzz.ts); undefined where it does not run. */
export const fuzz = {
  inputs: numberIn("PETREL_FUZZ_INPUTS"),
  mutations: numberIn("PETREL_FUZZ_MUTATIONS"),
  seed: numberIn("PETREL_FUZZ_SEED") ?? 20_261_123
}

export const isFuzzed = fuzz.inputs !== undefined

/** Operations that are driven by one story. */
export interface FuzzedGroup {
  /** Undefined for all of them. */
  readonly tag: string | undefined
  /** How many there are. */
  readonly count: number
}

/** The tag of each operation in the document. */
const tags = listedOperations.map(({ id }) => id.slice(0, id.indexOf(".")))

export const operationCount = tags.length

/**
 * The stories: all operations in one, or with many inputs those of each tag in one with an
 * installation of its own, so that no group's events, jobs and facts slow the next one down.
 */
export const groups: ReadonlyArray<FuzzedGroup> = isFuzzed
  ? [...new Set(tags)].map((tag) => ({ tag, count: tags.filter((one) => one === tag).length }))
  : [{ tag: undefined, count: tags.length }]

/** What starting an installation and a console may take, ms. */
const startMs = 120_000
/** What one input may take on average, ms: some ten times what it takes on a machine of its own. */
const inputMs = 300

/** How long a story with so many operations and inputs of each may take, ms. */
export const limitMs = (operations: number, inputs: number): number =>
  startMs + operations * inputs * inputMs

/** What came of one operation. */
export interface Driven {
  readonly operation: string
  readonly inputs: number
  /** How many answers had each status. */
  readonly statuses: Readonly<Record<string, number>>
}

/** Says what came of one operation, in a line. */
export const lineOf = ({ inputs, operation, statuses }: Driven): string => {
  const answers = Object.entries(statuses).map(([status, count]) => `${count} × ${status}`)
  return `${operation}: ${inputs} inputs, ${answers.join(", ")}\n`
}

/** Of so many inputs of an operation some are right. */
export const enoughInputs = 100

/** True where more inputs were refused as invalid than the document can explain. */
export const isMostlyRefused = ({ inputs, statuses }: Driven): boolean =>
  (statuses[400] ?? 0) + (statuses[422] ?? 0) > inputs / 2

export const succeeded = (statuses: Driven["statuses"]): boolean =>
  Object.keys(statuses).some((status) => status.startsWith("2"))
