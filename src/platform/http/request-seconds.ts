import type { Metric, Registry } from 'prom-client';

/** Seconds; the last bucket holds most streams of AI answers. */
const BUCKETS = [0.005, 0.02, 0.1, 0.25, 0.5, 1, 2.5, 10, 60];

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Route of a request without an endpoint. */
const UNMATCHED = 'unmatched';

/** Status of an answer whose client left before its end. */
const ABORTED = 'aborted';

const LABELS = ['listener', 'method', 'route', 'status'] as const;

type Labels = Record<(typeof LABELS)[number], string>;

/** Notes the duration of one answered request. `route` is the declared path, undefined without an endpoint. */
export type NoteRequest = (
  method: string,
  route: string | undefined,
  status: number | undefined,
  seconds: number,
) => void;

/** Requests with the same labels. */
interface Series {
  readonly labels: Labels;
  /** Requests by bucket, the last one for longer requests. */
  readonly counts: number[];
  seconds: number;
}

const NAME = 'aps_http_request_seconds';

/**
 * Durations of requests, by listener. All label values come from closed sets. A histogram of prom-client hashes
 * its labels at each request, which costs 2 % of a small request's CPU time.
 */
export class RequestSeconds {
  readonly #series: Series[] = [];

  constructor(registry: Registry) {
    const metric = {
      name: NAME,
      help: 'Requests from their arrival to the end of their answers',
      type: 'histogram',
      aggregator: 'sum',
      get: () => Promise.resolve({ ...metric, values: this.#series.flatMap(valuesOf) }),
    };
    // A registry reads only these fields; its sums over processes are such objects as well.
    registry.registerMetric(metric as unknown as Metric);
  }

  /** Returns the function that notes a listener's requests; status undefined means that the client left. */
  of(listener: string): NoteRequest {
    const routes = new Map<string, Map<string, Map<number | undefined, Series>>>();
    return (method, route = UNMATCHED, status, seconds) => {
      const known = METHODS.has(method) ? method : 'other';
      const methods = entry(
        routes,
        route,
        () => new Map<string, Map<number | undefined, Series>>(),
      );
      const statuses = entry(methods, known, () => new Map<number | undefined, Series>());
      const series = entry(statuses, status, () =>
        this.#add({
          listener,
          method: known,
          route,
          status: status === undefined ? ABORTED : String(status),
        }),
      );
      const found = BUCKETS.findIndex((bound) => seconds <= bound);
      const bucket = found < 0 ? BUCKETS.length : found;
      series.counts[bucket] = (series.counts[bucket] ?? 0) + 1;
      series.seconds += seconds;
    };
  }

  #add(labels: Labels): Series {
    const series = {
      labels,
      counts: Array.from({ length: BUCKETS.length + 1 }, () => 0),
      seconds: 0,
    };
    this.#series.push(series);
    return series;
  }
}

/** Returns the values of a histogram, whose buckets include all smaller ones. */
function valuesOf({ counts, labels, seconds }: Series) {
  let total = 0;
  const buckets = counts.map((count, index) => {
    total += count;
    const le = BUCKETS[index] ?? '+Inf';
    return { metricName: `${NAME}_bucket`, labels: { le, ...labels }, value: total };
  });
  return [
    ...buckets,
    { metricName: `${NAME}_sum`, labels, value: seconds },
    { metricName: `${NAME}_count`, labels, value: total },
  ];
}

function entry<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = make();
  map.set(key, made);
  return made;
}
