import { area, variable, type SettingsOf } from '../platform/environment/area.js';
import { problemOfFile } from '../platform/environment/settings-file.js';
import { text } from '../platform/environment/types.js';
import { loadFeeds, SHIPPED_FEEDS } from './feed-list.js';

export const feedSettings = area(
  'Data feeds',
  () => ({
    file: variable(
      'DATAFEEDS_FILE',
      text.optional(),
      'file with the feeds that users read, in the format of the shipped file',
      { whenUnset: `the shipped \`${SHIPPED_FEEDS}\`` },
    ),
  }),
  ({ file }) => ({ feeds: loadFeeds(file) }),
  ({ file }) =>
    problemOfFile(
      () => loadFeeds(file),
      file === undefined ? SHIPPED_FEEDS : 'the file that DATAFEEDS_FILE names',
    ),
);

export type FeedSettings = SettingsOf<typeof feedSettings>;
