import { Effect } from "effect"
import { type ClientOptions, httpClient } from "../../src/client/client.ts"
import { type Answer, type Received, receiver, type Script } from "../kit/receiver.ts"

/** An answer with JSON. */
export const json = (
  body: unknown,
  status = 200,
  headers: Readonly<Record<string, string>> = {}
): Answer => ({
  status,
  headers: { "content-type": "application/json", ...headers },
  body: JSON.stringify(body)
})

/** An answer that refuses a request. */
export const problem = (
  status: number,
  code: string,
  headers: Readonly<Record<string, string>> = {}
): Answer => {
  const body = {
    type: `urn:petrel:problem:${code}`,
    status,
    title: "Refused",
    detail: `it is ${code}`
  }
  return json(body, status, { "content-type": "application/problem+json", ...headers })
}

/** Breaks the connection off without an answer. */
export const broken: Script = (_, response) => {
  response.destroy()
  return undefined
}

/** Answers the n-th request by the n-th script; the last one repeats. */
export const inOrder = (...scripts: ReadonlyArray<Script>): Script => {
  let asked = 0
  return (request, response) => {
    const script = scripts[Math.min(asked++, scripts.length - 1)] ?? {}
    return typeof script === "function" ? script(request, response) : script
  }
}

/** Starts a server that answers by a script, and makes a client for it. */
export const clientOf = (script: Script, options: ClientOptions = {}) =>
  Effect.map(receiver({ answer: script }), (server) => ({
    ...server,
    petrel: httpClient({ url: server.url, token: "ptl_x", tenant: "acme", ...options })
  }))

/** What a request published: the events of its array, or the one that it is. */
export const eventsIn = ({ body }: Received): ReadonlyArray<{ readonly id: string }> =>
  [JSON.parse(body.toString("utf8"))].flat()

/** Returns what a promise rejects with. */
export const rejected = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => {
      throw new Error("it was not refused")
    },
    (error: unknown) => error
  )
