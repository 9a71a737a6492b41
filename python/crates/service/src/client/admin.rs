//! What operators ask of a server.

use super::stream::{connect, watched};
use crate::error::ServiceError;
use crate::proto;
use std::path::Path;

/// Asks, and waits as long as the server is there: to open a source takes as long as it does.
fn ask<T>(
    path: &Path,
    question: impl AsyncFnOnce(proto::joader_client::JoaderClient<tonic::transport::Channel>) -> Result<T, tonic::Status>,
) -> Result<T, ServiceError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| ServiceError::Lost(error.to_string()))?;
    runtime.block_on(async {
        let client = connect(path).await?;
        Ok(watched(&client, question(client.clone())).await??)
    })
}

/// Creates a data set, or gives one of that name another source.
///
/// # Errors
/// [`ServiceError`]
pub fn put_data_set(path: &Path, data_set: proto::DataSet, replaces: bool) -> Result<proto::DataSetInfo, ServiceError> {
    ask(path, async |mut client| {
        let info = if replaces { client.alter(data_set).await } else { client.create(data_set).await };
        Ok(info?.into_inner())
    })
}

/// Drops a data set on which no job trains.
///
/// # Errors
/// [`ServiceError`]
pub fn drop_data_set(path: &Path, name: &str) -> Result<(), ServiceError> {
    let name = name.to_owned();
    ask(path, async |mut client| client.drop(proto::Name { name }).await.map(drop))
}

/// All data sets, by name.
///
/// # Errors
/// [`ServiceError`]
pub fn data_sets(path: &Path) -> Result<Vec<proto::DataSetInfo>, ServiceError> {
    ask(path, async |mut client| Ok(client.list(proto::Nothing {}).await?.into_inner().data_sets))
}

/// What a server and its jobs do.
///
/// # Errors
/// [`ServiceError`]
pub fn status(path: &Path) -> Result<proto::StatusReply, ServiceError> {
    ask(path, async |mut client| Ok(client.status(proto::Nothing {}).await?.into_inner()))
}
