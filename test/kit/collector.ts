import { Effect } from "effect"
import { eventually } from "./engine.ts"
import type { Receiver, Script } from "./receiver.ts"
import { receiver } from "./receiver.ts"

/** A span as OTLP's JSON has it. */
export interface OtlpSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
  readonly name: string
  readonly attributes: ReadonlyArray<{
    readonly key: string
    readonly value: Readonly<Record<string, unknown>>
  }>
}

/** Returns a span's attribute, as text. */
export const attribute = ({ attributes }: OtlpSpan, name: string): string | undefined => {
  const [value] = Object.values(attributes.find(({ key }) => key === name)?.value ?? {})
  return value === undefined ? undefined : String(value)
}

const spansIn = ({ body }: { readonly body: Buffer }): ReadonlyArray<OtlpSpan> =>
  JSON.parse(String(body)).resourceSpans.flatMap(
    ({ scopeSpans }: { scopeSpans: ReadonlyArray<{ spans: ReadonlyArray<OtlpSpan> }> }) =>
      scopeSpans.flatMap(({ spans }) => spans)
  )

export interface Collector extends Receiver {
  /** All spans that were pushed, whatever the answer. */
  readonly spans: () => ReadonlyArray<OtlpSpan>
  /** Waits for so many different spans. */
  readonly different: (count: number) => Effect.Effect<ReadonlyArray<OtlpSpan>>
}

/** An OTLP collector of spans; takes them all unless the script says otherwise. */
export const spanCollector = (answer: Script = { body: "{}" }) =>
  Effect.map(receiver({ answer }), (made): Collector => {
    const spans = () => made.requests.flatMap(spansIn)
    const ids = () => new Set(spans().map(({ spanId }) => spanId))
    const enough = (count: number) =>
      eventually(Effect.sync(ids), ({ size }) => size >= count).pipe(Effect.map(spans))
    return { ...made, spans, different: enough }
  })
