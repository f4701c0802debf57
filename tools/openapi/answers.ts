/* What a console answered, and whether its document says so. */
import { checksOf, pointerTo } from "./check.ts"
import { type Document, isJson, type Operation } from "./document.ts"
import type { Written } from "./requests.ts"

/** What a console answered. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly ms: number
}

/** How long a stream that does not end is listened to, ms. */
const listenMs = 300

/** Reads an answer. One that does not end is left. */
export const read = async (response: Response, began: number): Promise<Answer> => {
  const { headers, status } = response
  const isEndless = headers.get("content-type")?.startsWith("text/event-stream") === true
  let text = ""
  if (isEndless) {
    const reader = response.body?.getReader()
    const first = await Promise.race([
      reader?.read(),
      new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), listenMs))
    ])
    text = new TextDecoder().decode(first?.value)
    await reader?.cancel()
  } else text = await response.text()
  return { status, headers, text, ms: performance.now() - began }
}

/** Compares answers with a document. */
export const comparing = (document: Document) => {
  const checkAt = checksOf(document)
  return ({ method, path, responses }: Operation, { headers, status, text }: Answer) => {
    const documented = responses[String(status)]
    if (documented === undefined) return `the status ${status} is not documented`
    const given = headers.get("content-type")?.split(";")[0] ?? ""
    const kinds = Object.keys(documented.content ?? {})
    const kind = kinds.find((one) => one === given || one === "*/*")
    if (kind === undefined && !(kinds.length === 0 && text === ""))
      return `the content type ${given} of ${status} is not documented`
    for (const [name, { required }] of Object.entries(documented.headers ?? {}))
      if (required === true && !headers.has(name)) return `${status} has no header ${name}`
    if (kind === undefined || !isJson(kind)) return undefined
    const keys = ["paths", path, method, "responses", String(status), "content", kind, "schema"]
    const problem = checkAt(pointerTo(keys))(JSON.parse(text))
    return problem === undefined
      ? undefined
      : `the body of ${status} is not as its schema: ${problem}`
  }
}

/** Finds bodies that were taken although the document refuses them. */
export const refusing = (document: Document) => {
  const checkAt = checksOf(document)
  return ({ method, path, requestBody }: Operation, asked: Written, { status }: Answer) => {
    const schema = requestBody?.content["application/json"]?.schema
    const isRead = asked.headers["content-type"] === "application/json"
    if (status >= firstRefusal || schema === undefined || !isRead) return undefined
    if ((asked.body ?? "") === "")
      return requestBody?.required === true ? "it took no body, and needs one" : undefined
    const keys = ["paths", path, method, "requestBody", "content", "application/json", "schema"]
    const body = parsed(asked.body)
    // Each event of a batch is answered by itself.
    if (Array.isArray(body)) return undefined
    const problem = checkAt(pointerTo(keys))(body)
    return problem === undefined ? undefined : `it took a body that its schema refuses: ${problem}`
  }
}

const firstRefusal = 300

/** Returns what a text is as JSON; undefined, which no schema takes, for one that is none. */
const parsed = (text: string | undefined): unknown => {
  try {
    return JSON.parse(text ?? "")
  } catch {
    return undefined
  }
}

/** Returns what is wrong with an answer of the server itself, whatever was asked. */
export const faultOf = ({ headers, status, text }: Answer): string | undefined => {
  if (status >= 500) return `the server answered ${status}`
  if (status < 400) return undefined
  const type = headers.get("content-type") ?? ""
  if (type !== "application/problem+json") return `${status} has the content type ${type}`
  const problem: { status?: unknown; type?: unknown } = JSON.parse(text)
  return problem.status === status && String(problem.type).startsWith("urn:petrel:problem:")
    ? undefined
    : `${status} is no problem document of its own status`
}
