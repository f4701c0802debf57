import type { ConsumerInfo } from "@nats-io/jetstream"
import { answerOf } from "./api-answer.ts"
import type { Clients } from "./clients.ts"
import type { WantedConsumer } from "./consumers.ts"

/** How long the broker may take to make a consumer, ms. */
const madeWithinMs = 5_000

/**
 * Makes a durable consumer, always by the same request. For one with several filters the client uses
 * that of servers before 2.9 (CONSUMER.DURABLE.CREATE), which nats.conf does not allow.
 */
export const makeConsumer = async (
  { connection }: Pick<Clients, "connection">,
  stream: string,
  config: WantedConsumer
): Promise<ConsumerInfo> => {
  const name = config.durable_name
  const request = { stream_name: stream, config: { ...config, name }, action: "create" }
  const { filter_subject: filter } = config
  const subject = `$JS.API.CONSUMER.CREATE.${stream}.${name}${filter === undefined ? "" : `.${filter}`}`
  return answerOf<ConsumerInfo>(
    await connection.request(subject, JSON.stringify(request), { timeout: madeWithinMs })
  )
}
