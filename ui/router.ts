import { computed, signal } from "@preact/signals"

/** What the browser's address says, below `/ui/`. */
const at = signal(location.pathname + location.search)

/** The forms of the page that have what was typed and not saved: it is asked before they are left. */
export const drafts = new Set<object>()

addEventListener("beforeunload", (event) => {
  if (drafts.size > 0) event.preventDefault()
})

/** What is typed on a page is about: itself and its tenant. What is new may be for another one yet. */
const subjectOf = ({ pathname, searchParams }: URL): string =>
  pathname.endsWith("/new") ? pathname : `${pathname} ${searchParams.get("tenant")}`

/** True where the page that is shown stays, for all that the browser or a link wants. */
const isKept = (to: string): boolean =>
  drafts.size > 0 &&
  subjectOf(new URL(to, location.origin)) !== subjectOf(url.value) &&
  !confirm("Leave without saving what you typed?")

addEventListener("popstate", () => {
  // The browser has gone there already.
  if (isKept(location.href)) return history.pushState(null, "", at.value)
  at.value = location.pathname + location.search
})

const url = computed(() => new URL(at.value, location.origin))

/** The parts of the path, decoded: `["deliveries", "acme", "…"]`. */
export const path = computed(() =>
  url.value.pathname
    .replace(/^\/ui\/?/, "")
    .split("/")
    .filter((part) => part !== "")
    .map(decodeURIComponent)
)

/** The tenant that the path names: `/ui/deliveries/acme/…`. Undefined on a list. */
export const pathTenant = computed(() =>
  path.value.length > 2 && path.value[1] !== "*" ? path.value[1] : undefined
)

/** The filters of the page, which are in the address: a link to it shows the same. */
export const query = computed(() => Object.fromEntries(url.value.searchParams))

/** Returns the address of a page. Filters without a value are left out. */
export const address = (
  parts: ReadonlyArray<string>,
  filters: Readonly<Record<string, string | undefined>> = {}
): string => {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(filters))
    if (value !== undefined && value !== "") search.set(name, value)
  const text = search.toString()
  return `/ui/${parts.map(encodeURIComponent).join("/")}${text === "" ? "" : `?${text}`}`
}

/** Goes to a page. */
export const go = (to: string, replaces = false): void => {
  if (isKept(to)) return
  history[replaces ? "replaceState" : "pushState"](null, "", to)
  at.value = location.pathname + location.search
  if (!replaces) scrollTo(0, 0)
}

/** Changes filters of the page that is shown. */
export const filter = (changes: Readonly<Record<string, string | undefined>>): void =>
  go(address(path.value, { ...query.value, ...changes }))

// Links within the pages load nothing anew.
addEventListener("click", (event) => {
  const link = event.target instanceof Element ? event.target.closest("a") : null
  if (link === null || event.defaultPrevented || event.button !== 0 || link.target !== "") return
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
  if (link.getAttribute("href")?.startsWith("#") === true) return
  if (link.origin !== location.origin || !link.pathname.startsWith("/ui/")) return
  event.preventDefault()
  go(link.pathname + link.search)
})
