import { Effect } from "effect"
import type { SendTest, TestExchange } from "../../cluster/command.ts"
import type { Delivery } from "../../domain/delivery.ts"
import { firstRound, untried } from "../../domain/delivery.ts"
import type { AttemptOutcome } from "../../domain/outcome.ts"
import { present } from "../../domain/record.ts"
import { mask } from "../../domain/settings/endpoint-table.ts"
import type { LiveEndpoint } from "../../endpoints/directory.ts"
import { signatureHeaderOf } from "../../endpoints/signing.ts"
import type { Sender } from "../http/sender.ts"
import { requestFor, sendRequest } from "../http/sender.ts"

/** Tells a receiver that a request is a test, whatever its event type is. */
const testHeader = ["petrel-test", "true"] as const
/** A test waits no longer than this for an answer, whatever the endpoint's time-out, ms. */
const maxTimeoutMs = 2 * 60_000

const exchangeOf = (
  { result, verdict }: AttemptOutcome,
  headers: ReadonlyArray<string>,
  { target }: LiveEndpoint,
  at: number
): TestExchange => {
  const { connectMs, durationMs, error, firstByteMs, redirects, response, status } = result
  return {
    ...{ url: target.url, headers, at, durationMs, verdict },
    ...present({ status, error, response, redirects, connectMs, firstByteMs })
  }
}

/** Masks the values of some headers: names and values alternate. */
const masked = (headers: ReadonlyArray<string>, isHidden: (name: string) => boolean) =>
  headers.map((part, n) => (n % 2 === 1 && isHidden(headers[n - 1] ?? "") ? mask : part))

/**
 * Sends one event that nobody has published, signed and under the rules of any other request, and
 * returns how that went. It is no attempt: neither the endpoint's health nor its limits, nor the
 * history know of it.
 */
export const sendTest = (
  sender: Sender,
  endpoint: LiveEndpoint,
  { body: text, contentType, id, type }: SendTest
): Effect.Effect<TestExchange> =>
  Effect.callback((resume) => {
    const at = sender.clock.currentTimeMillisUnsafe()
    const { generation, id: name, sign: scheme, signatureHeader, tenant } = endpoint.config
    const signatureName = signatureHeaderOf({ scheme, signatureHeader })
    const delivery: Delivery = {
      ...{ tenant, endpoint: name, event: id, eventSeq: 0, eventAt: at, type },
      ...{ round: firstRound, began: at, deadline: Number.POSITIVE_INFINITY },
      ...{ generation, revision: endpoint.revision, content: { contentType }, progress: untried }
    }
    const sending = { delivery, body: Buffer.from(text, "utf8") }
    const signed = requestFor(sending, endpoint, 1, at, sender.traces)
    const headers = [...signed.headers, ...testHeader]
    const timeoutMs = Math.min(signed.timeoutMs, maxTimeoutMs)
    // With its signature, whoever asks for a test could send it themselves.
    const shown = [
      ...masked(headers, (name) => name === signatureName),
      ...masked(signed.ownHeaders, () => true)
    ]
    const request = { ...signed, headers, timeoutMs }
    const running = sendRequest(sender, request, sending, endpoint, at, (outcome) =>
      resume(Effect.succeed(exchangeOf(outcome, shown, endpoint, at)))
    )
    return Effect.sync(running.interrupt)
  })
