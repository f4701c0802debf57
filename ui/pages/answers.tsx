import { count } from "../parts.tsx"
import { address } from "../router.ts"

/** Attempts without a complete one. */
const noAnswer = "none"

/** What receivers answered in a day, most first: each leads to its attempts. */
export const Answers = ({
  of,
  place
}: {
  readonly of: Readonly<Record<string, number>>
  readonly place: { readonly tenant: string; readonly id?: string }
}) => {
  const sorted = Object.entries(of).toSorted(([, a], [, b]) => b - a)
  return sorted.length === 0 ? null : (
    <p class="answers">
      {sorted.map(([answer, n]) => (
        <a
          key={answer}
          class={`chip ${answer.startsWith("2") ? "good" : "bad"}`}
          href={address(["attempts"], {
            ...{ tenant: place.tenant, endpoint: place.id, since: "1d" },
            status: answer
          })}
        >
          {answer === noAnswer ? "no answer" : answer} <b>{count(n)}</b>
        </a>
      ))}
    </p>
  )
}
