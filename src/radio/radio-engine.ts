import { Icecast } from './icecast.js';
import { LiveSources } from './live-sources.js';
import type { IcecastSettings, RadioSettings } from './settings.js';

/** The configured Icecast, which all parts of a process share. */
export interface RadioEngine {
  readonly icecast: Icecast;
  readonly sources: LiveSources;
  readonly settings: IcecastSettings;
}

/** Creates the access to the configured Icecast; undefined without a radio. */
export function createRadioEngine({ icecast: settings }: RadioSettings): RadioEngine | undefined {
  if (!settings) return undefined;
  const icecast = new Icecast(settings);
  return { icecast, sources: new LiveSources(icecast), settings };
}
