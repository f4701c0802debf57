import type { ApiProblemCode } from "./generated/schemas.ts"

/** What an answer refuses a request for; `unknown`: it is not Petrel's, as that of a proxy. */
export type ProblemCode = ApiProblemCode | "unknown"

/** What is wrong with one field of a request. */
export interface FieldProblem {
  readonly field: string
  readonly message: string
}

/** An answer that refuses a request (RFC 9457). */
export class PetrelProblem extends Error {
  override readonly name = "PetrelProblem"
  /** What it is refused for, such as `not-found`. */
  readonly code: ProblemCode
  /** As over HTTP: 404. */
  readonly status: number
  /** What was asked for: `endpoints.get`. */
  readonly operation: string
  /** What is wrong, field by field. */
  readonly errors: ReadonlyArray<FieldProblem>
  /** Seconds until it is worth trying again. */
  readonly retryAfter: number | undefined

  constructor(
    message: string,
    problem: Pick<PetrelProblem, "code" | "status" | "operation" | "errors" | "retryAfter">
  ) {
    super(message)
    this.code = problem.code
    this.status = problem.status
    this.operation = problem.operation
    this.errors = problem.errors
    this.retryAfter = problem.retryAfter
  }
}

/**
 * A request was not answered: nobody was reached, or not in time. Whether it was carried out is not
 * known. `cause` has what happened.
 */
export class NoAnswer extends Error {
  override readonly name = "NoAnswer"
  readonly operation: string

  constructor(operation: string, message: string, options?: { readonly cause?: unknown }) {
    super(`${operation}: ${message}`, options)
    this.operation = operation
  }
}

/** True for an answer that refuses a request, for one of these reasons if any are given. */
export const isProblem = <Code extends ProblemCode = ProblemCode>(
  error: unknown,
  ...codes: ReadonlyArray<Code>
): error is PetrelProblem & { readonly code: Code } =>
  error instanceof PetrelProblem &&
  (codes.length === 0 || (codes as ReadonlyArray<string>).includes(error.code))

/** An answer, whatever it came over. */
export interface Answer {
  readonly status: number
  /** Returns the value of a header by its name in lower case. */
  readonly header: (name: string) => string | undefined
  readonly body: Uint8Array
}

const textDecoder = new TextDecoder()

/** Returns the JSON of an answer, or undefined where it has none. */
export const jsonIn = ({ body, header }: Answer): unknown => {
  if (!/[/+]json\b/.test(header("content-type") ?? "")) return undefined
  try {
    return JSON.parse(textDecoder.decode(body))
  } catch {
    return undefined
  }
}

const root = "urn:petrel:problem:"

const isFieldProblem = (one: unknown): one is FieldProblem => {
  const { field, message }: { field?: unknown; message?: unknown } = Object(one)
  return typeof field === "string" && typeof message === "string"
}

/** Returns the seconds of a Retry-After. Petrel gives no date. */
export const retryAfterOf = (answer: Answer): number | undefined => {
  const text = answer.header("retry-after")
  return text !== undefined && /^\d{1,6}$/.test(text) ? Number(text) : undefined
}

/** Returns the problem that an answer is. */
export const problemIn = (operation: string, answer: Answer): PetrelProblem => {
  const { detail, errors, title, type }: Record<string, unknown> = Object(jsonIn(answer))
  const isKnown = typeof type === "string" && type.startsWith(root)
  const fields = Array.isArray(errors) ? errors.filter(isFieldProblem) : []
  const said = [detail, title].find((text) => typeof text === "string" && text !== "")
  const message =
    fields.length > 0
      ? fields.map(({ field, message }) => `${field} ${message}`).join("; ")
      : String(said ?? `an answer with status ${answer.status} that is not Petrel's`)
  return new PetrelProblem(`${operation}: ${message}`, {
    code: isKnown ? (type.slice(root.length) as ApiProblemCode) : "unknown",
    status: answer.status,
    operation,
    errors: fields,
    retryAfter: retryAfterOf(answer)
  })
}
