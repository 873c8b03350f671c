export const activities = {
  isDone: (_person: string) => Promise.resolve(false),
  send: (_person: string) => Promise.resolve(),
};

export type ReminderActivities = typeof activities;
