/* When attempts of a retry policy would come, drawn. */
import type { OutlinedPolicy } from "../../src/client/client.ts"
import { spanMs } from "../span.ts"
import { lasting, lastingExactly } from "../times.tsx"

type Wait = OutlinedPolicy["waits"][number]

/** A second and more, as the axis has it. The first is at its left end. */
const ticks = [
  [1_000, "1 s"],
  [10_000, "10 s"],
  [60_000, "1 min"],
  [600_000, "10 min"],
  [3_600_000, "1 h"],
  [21_600_000, "6 h"],
  [86_400_000, "1 d"],
  [604_800_000, "7 d"],
  [2_592_000_000, "30 d"]
] as const

/** What a label takes of the axis, percent. */
const labelPercent = 13

/** Waits grow by factors: on a scale of seconds all but the last would be at its left end. */
const scaleTo = (mostMs: number) => {
  const [least, most] = [Math.log(ticks[0][0]), Math.log(Math.max(mostMs, 10_000))]
  return (ms: number): number =>
    Math.max(0, Math.min(100, ((Math.log(Math.max(ms, 1_000)) - least) / (most - least)) * 100))
}

/** Returns a shortest and a longest time as one text. */
export const rangeText = (least: string, most: string): string => {
  const [from, to] = [lastingExactly(spanMs(least)), lastingExactly(spanMs(most))]
  return from === to ? to : `${from} to ${to}`
}

/** Attempts that are drawn before the rest is folded. */
const mostDrawn = 16

const Bar = ({
  of,
  place,
  ticksAt
}: {
  readonly of: Wait
  readonly place: (ms: number) => number
  readonly ticksAt: ReadonlyArray<number>
}) => {
  const [from, to] = [place(spanMs(of.earliest)), place(spanMs(of.latest))]
  // A moment is drawn as wide as can be seen.
  const width = Math.max(0.8, to - from)
  return (
    <svg viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true">
      {ticksAt.map((at) => (
        <rect key={at} class="tick" x={at} width={0.15} height={12} />
      ))}
      <rect
        class={of.mayBeCut ? "cut" : "comes"}
        x={Math.min(from, 100 - width)}
        y={2}
        width={width}
        height={8}
      />
    </svg>
  )
}

const endTexts = {
  attempts: "its attempts are used up",
  window: "its time is over",
  either: "its attempts are used up or its time is over, whichever comes first"
}

/** Says what other limits statuses have, those with the same ones together. */
const limitTexts = (statuses: OutlinedPolicy["statuses"]): ReadonlyArray<string> =>
  [
    ...Map.groupBy(
      statuses,
      ({ attempts, window }) => `${attempts} attempts at most, within ${lasting(spanMs(window))}`
    )
  ].map(([limit, those]) => `After ${those.map(({ status }) => status).join(" or ")}: ${limit}.`)

/** The retry schedule of a policy: when each attempt would come if all fail. */
export const Schedule = ({ of }: { readonly of: OutlinedPolicy }) => {
  const { endedBy, givesUp, maxAttempts, statuses, waits } = of
  const most = Math.max(10_000, ...waits.map(({ latest }) => spanMs(latest)))
  const place = scaleTo(most)
  const shownTicks = ticks.filter(([ms], at) => {
    const next = ticks[at + 1]?.[0]
    return (
      ms <= most && (next === undefined || next > most || place(next) - place(ms) > labelPercent)
    )
  })
  const ticksAt = shownTicks.map(([ms]) => place(ms))
  const drawn = waits.slice(0, mostDrawn)
  const last = waits.at(-1)
  return (
    <>
      <p class="small">
        {waits.length === 0
          ? "One attempt, and no other."
          : `${maxAttempts} attempts at most; given up after ${rangeText(givesUp.earliest, givesUp.latest)}, when ${endTexts[endedBy]}.`}
      </p>
      {waits.length > 0 && (
        <table class="schedule">
          <thead>
            <tr>
              <th>Attempt</th>
              <th class="hide-m">Waits</th>
              <th>After the first</th>
              <th class="axis">
                <span class="unseen">Drawn</span>
                <svg aria-hidden="true">
                  {shownTicks.map(([ms, text]) => (
                    <text
                      key={ms}
                      x={`${place(ms)}%`}
                      y={12}
                      text-anchor={place(ms) > 94 ? "end" : place(ms) < 4 ? "start" : "middle"}
                    >
                      {text}
                    </text>
                  ))}
                </svg>
              </th>
            </tr>
          </thead>
          <tbody>
            {drawn.map((wait) => (
              <tr key={wait.attempt}>
                <td class="n">{wait.attempt}</td>
                <td class="hide-m">{rangeText(wait.least, wait.most)}</td>
                <td>
                  {rangeText(wait.earliest, wait.latest)}
                  {wait.mayBeCut && <small> may not come</small>}
                </td>
                <td class="axis">
                  <Bar of={wait} place={place} ticksAt={ticksAt} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {last !== undefined && waits.length > drawn.length && (
        <p class="small">
          and {waits.length - drawn.length} more, the last after{" "}
          {rangeText(last.earliest, last.latest)}
        </p>
      )}
      {limitTexts(statuses).map((text) => (
        <p key={text} class="small">
          {text}
        </p>
      ))}
    </>
  )
}
