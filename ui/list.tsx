/* Lists: their rows, their pages, and the conditions that the address has for them. */
import type { ComponentChildren } from "preact"
import { useMemo } from "preact/hooks"
import type { CallOptions } from "../src/client/client.ts"
import { type Asked, useAsked } from "./data.ts"
import { isBack, sinceTime } from "./filters.tsx"
import { shownEndpoint, shownTenant } from "./frame.tsx"
import { Answered } from "./parts.tsx"
import { filter, query } from "./router.ts"

const chosen = (name: string): string | undefined =>
  (name === "endpoint" ? shownEndpoint() : query.value[name]) || undefined

/** Returns what a list is narrowed by, of these, as the API has it: a time that is back is as of now. */
export const conditions = (filters: ReadonlyArray<string>): Record<string, string> =>
  Object.fromEntries(
    filters.flatMap((name) => {
      const value = chosen(name)
      if (value === undefined) return []
      return [[name, name === "since" ? sinceTime(value) : value]]
    })
  )

/** Returns what tells one choice of filters from another: the same text for as long as nobody changes one. */
const choiceOf = (filters: ReadonlyArray<string>): string =>
  JSON.stringify([shownTenant(), ...filters.map(chosen)])

/**
 * Returns where the page of a list begins. One of a time that is back was of another time: what begins
 * then is the first page.
 */
const shownCursor = (): string | undefined =>
  isBack(query.value.since) ? undefined : query.value.cursor

/** What is known of a page of a list, and what the list is narrowed by. */
export interface Listed<A> extends Asked<A> {
  readonly given: Readonly<Record<string, string>>
}

/**
 * Asks for the page of a list that the address names, as `useAsked` does.
 *
 * @param name what is listed.
 * @param filters the names of those that the list has, besides the tenant.
 */
export const usePage = <A,>(
  name: string,
  filters: ReadonlyArray<string>,
  list: (
    given: { readonly tenant: string } & Record<string, string>,
    options: CallOptions
  ) => { readonly page: (cursor: string | undefined) => Promise<A> },
  everyMs?: number | ((value: A) => number | undefined)
): Listed<A> => {
  const tenant = shownTenant()
  const cursor = shownCursor()
  const choice = choiceOf(filters)
  // The other pages are those of the same times: the time before which an hour began stays.
  const given = useMemo(() => conditions(filters), [choice])
  const asked = useAsked(
    `${name} ${choice} ${cursor}`,
    (options) => list({ ...given, tenant }, options).page(cursor),
    everyMs
  )
  return { ...asked, given }
}

/** How often a list is asked for anew of which only the first page changes, ms. */
export const whileNewest = (): number | undefined =>
  shownCursor() === undefined ? 5_000 : undefined

interface RowsProps<A> {
  readonly empty: ComponentChildren
  readonly head: ComponentChildren
  readonly items: ReadonlyArray<A>
  readonly keyOf?: (item: A) => string | number
  readonly row: (item: A) => ComponentChildren
}

/**
 * A table. The keys j and k go from row to row (`moveInRows`), to the first link of each.
 *
 * @param keyOf what tells items apart whose places change. (Default: their places)
 */
export const Rows = <A,>({ empty, head, items, keyOf, row }: RowsProps<A>) => {
  if (items.length === 0) return <div class="card empty">{empty}</div>
  return (
    <section class="card flush scrolls">
      <table>
        <thead>
          <tr>{head}</tr>
        </thead>
        <tbody>
          {items.map((item, at) => (
            <tr key={keyOf?.(item) ?? at} tabIndex={-1}>
              {row(item)}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

/** Links to the pages before and after; to the first one where the API has none before. */
const Pager = ({
  cursors: { next, previous },
  show
}: {
  readonly cursors: { readonly next?: string; readonly previous?: string }
  readonly show: (cursor: string | undefined) => void
}) => {
  const isFurther = previous === undefined && shownCursor() !== undefined
  return next === undefined && previous === undefined && !isFurther ? null : (
    <nav class="pager" aria-label="Pages of the list">
      <button
        type="button"
        disabled={previous === undefined && !isFurther}
        onClick={() => show(previous)}
      >
        {isFurther ? "First page" : "Previous page"}
      </button>
      <button type="button" disabled={next === undefined} onClick={() => show(next)}>
        Next page
      </button>
    </nav>
  )
}

/** The rows of an answer, and links to its other pages where it has them. */
export const List = <P extends object, A>({
  asked,
  below,
  items,
  ...rows
}: Omit<RowsProps<A>, "items"> & {
  readonly asked: Asked<P> & Partial<Listed<P>>
  readonly below?: (page: P) => ComponentChildren
  readonly items: (page: P) => ReadonlyArray<A>
}) => (
  <Answered asked={asked}>
    {(page) => {
      // Another page is of the same time back, also for whoever opens its address later.
      const { since } = asked.given ?? {}
      const show = (cursor: string | undefined) =>
        filter({ ...(since === undefined ? {} : { since }), cursor })
      const pager = <Pager cursors={page} show={show} />
      return (
        <>
          <Rows {...rows} items={items(page)} />
          {below === undefined || asked.problem !== undefined ? (
            pager
          ) : (
            <div class="below">
              {pager}
              {below(page)}
            </div>
          )}
        </>
      )
    }}
  </Answered>
)
