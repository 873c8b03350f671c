import {
  DataTypes,
  type InferAttributes,
  type InferCreationAttributes,
  type Model,
  type Sequelize,
} from 'sequelize';

/** A user's setting for the heartbeat of all of their agents. */
export interface HeartbeatRow extends Model<
  InferAttributes<HeartbeatRow>,
  InferCreationAttributes<HeartbeatRow>
> {
  userId: string;
  /** Such as `3h`. */
  frequency: string;
  enabled: boolean;
  /** Whether Temporal's schedule is known to follow this row. */
  scheduled: boolean;
  lastHeartbeatAt: Date | null;
  /** When the setting was made; beats come in whole intervals after it. */
  updatedAt: Date;
}

export const defineHeartbeat = (sequelize: Sequelize) =>
  sequelize.define<HeartbeatRow>(
    'Heartbeat',
    {
      userId: { type: DataTypes.TEXT, primaryKey: true },
      frequency: { type: DataTypes.TEXT, allowNull: false },
      enabled: { type: DataTypes.BOOLEAN, allowNull: false },
      scheduled: { type: DataTypes.BOOLEAN, allowNull: false },
      lastHeartbeatAt: DataTypes.DATE,
      updatedAt: { type: DataTypes.DATE, allowNull: false },
    },
    {
      tableName: 'heartbeats',
      timestamps: false,
      indexes: [
        { name: 'heartbeats_unscheduled', fields: ['updated_at'], where: { scheduled: false } },
      ],
    },
  );
