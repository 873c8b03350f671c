/** Share of a full map that is evicted at once: the search for the oldest key passes over every removed key. */
const EVICTED_SHARE = 1 / 64;

/**
 * Sets a key of a map with a maximum size. A full map loses the keys set longest ago; a key that is set once in the
 * time in which half of the map is added is never lost.
 */
export function setBounded<K, V>(map: Map<K, V>, key: K, value: V, max: number): void {
  // A map less than half full evicts nothing soon, so that its keys keep their places.
  if (map.size > max / 2) map.delete(key);
  map.set(key, value);
  if (map.size <= max) return;
  let left = Math.ceil(max * EVICTED_SHARE);
  for (const oldest of map.keys()) {
    map.delete(oldest);
    left--;
    if (left === 0) return;
  }
}
