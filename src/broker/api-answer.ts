import { JetStreamApiError } from "@nats-io/jetstream"
import type { Msg } from "@nats-io/transport-node"

interface Answer {
  readonly error?: {
    readonly code: number
    readonly err_code: number
    readonly description: string
  }
}

/** Parses an answer of JetStream. Throws the error that it is. */
export const answerOf = <A extends object>(message: Msg): A => {
  const answer = message.json<A & Answer>()
  if (answer.error !== undefined) throw new JetStreamApiError(answer.error)
  return answer
}
